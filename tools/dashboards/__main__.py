"""Writes the dashboards into deploy/ and into the chart."""

from dashboards.files import FOLDERS, dashboard_texts

for folder in FOLDERS:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in dashboard_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
