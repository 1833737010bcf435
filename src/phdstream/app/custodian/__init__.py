"""`phdstream report CONFIG.toml`, the private part: what only the custodian of a stream may know of it. **Private.**"""

from phdstream.app.custodian.report import private_report, write_custodian_report

__all__ = ["private_report", "write_custodian_report"]
