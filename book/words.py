"""The words of theme and tools that their own catalogues leave in English."""

import gettext

ZH = {
    "Link to this heading": "此标题的链接",
    "Link to this image": "此图的链接",
    "Link to this table": "此表的链接",
    "Link to this definition": "此定义的链接",
    "System Settings": "跟随系统",
    "Light": "浅色",
    "Dark": "深色",
    "Color mode": "明暗",
    "Section Navigation": "章节目录",
    "On this page": "本页内容",
    "Skip to main content": "跳到正文",
    "Back to top": "回到顶部",
    "Fullscreen mode": "全屏",
    "Download this page": "下载本页",
    "Print to PDF": "打印为 PDF",
    "Search": "搜索",
    "Breadcrumb": "位置",
    "Previous": "上一页",
    "Next": "下一页",
    "previous page": "上一页",
    "next page": "下一页",
    "Index": "索引",
    "Contents": "目录",
}


class Fallback(gettext.NullTranslations):
    """Asked when the catalogues know no translation."""

    def gettext(self, message: str) -> str:
        return ZH.get(message, message)
