"""Collects the licences of wheels in one text.

python tools/web/wheel_licences.py FOLDER OUT
"""

import email.parser
import re
import sys
import zipfile
from pathlib import Path

LICENCE = re.compile(r"(^|/)(licen[cs]e|notice|copying|authors)[^/]*$", re.IGNORECASE)


def licences(wheel: Path) -> str:
    """Name, version and all licence texts of a wheel, those of what it contains included."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata_name = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.parser.Parser().parsestr(archive.read(metadata_name).decode())
        texts = [archive.read(name).decode(errors="replace") for name in names if LICENCE.search(name)]
    if not texts:
        raise SystemExit(f"{wheel.name} has no licence text: it can't be served")
    return f"{metadata['Name']} {metadata['Version']}\n\n" + "\n\n".join(dict.fromkeys(texts))


def main(folder: Path, out: Path) -> None:
    out.write_text(f"\n{'-' * 78}\n\n".join(licences(wheel) for wheel in sorted(folder.glob("*.whl"))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
