"""Packs web/python, the page's own Python modules, as a wheel, so that it is compiled and loaded like the others.

python tools/web/page_wheel.py SOURCE_FOLDER TARGET_FOLDER
"""

import sys
import zipfile
from pathlib import Path

NAME, VERSION = "weft_page", "0.1.0"


def main(source: Path, target: Path) -> None:
    info = f"{NAME}-{VERSION}.dist-info"
    files = {path.name: path.read_text() for path in sorted(source.glob("*.py"))}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: weft-page\nVersion: {VERSION}\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in files) + f"{info}/RECORD,,\n"
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target / f"{NAME}-{VERSION}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
