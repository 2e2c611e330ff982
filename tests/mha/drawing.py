"""What the tests of figures share: drawing where every warning and every missing glyph is an error."""

import logging
import warnings


def drawn(fig):
    """The figure's title and alt text, after drawing it where every warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fig.canvas.draw()
    return fig.get_suptitle(), fig.get_label()


def assert_frames_speak(draws, lang, caplog):
    """Each of `draws` makes a frame of one size, with title and alt text in `lang`, and no glyph is missing."""
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        frames = [draw() for draw in draws]
        for fig in frames:
            fig.canvas.draw()
    assert not caplog.records
    assert len({tuple(fig.get_size_inches()) for fig in frames}) == 1
    for fig in frames:
        assert fig.get_suptitle()
        assert len(fig.get_label()) > 20
        assert any("\u4e00" <= c <= "\u9fff" for c in fig.get_label()) == (lang == "zh")
