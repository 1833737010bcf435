"""The page: a stream of releases to look at, in one file or served. Public: it is made of releases alone."""

from phdstream.page.document import page_html, page_policy
from phdstream.page.report import write_report

__all__ = ["page_html", "page_policy", "write_report"]
