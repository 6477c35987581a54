"""Objects of the host's compiler: what is said of them is what binutils and pyelftools say."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection
from tests.support.compiled import Objects
from tests.support.elf_objects import PROGBITS, Part, Sym, elf, symbols

from akf.build.inspect import describe, describe_bytes


def nm(path: Path, *words: str) -> list[str]:
    """Names as `nm` sees them."""
    done = subprocess.run(["nm", "--format=posix", *words, str(path)], capture_output=True, check=True, text=True)
    return sorted(line.split()[0].partition("@")[0] for line in done.stdout.splitlines())


def test_a_shared_object_is_what_binutils_say(objects: Objects) -> None:
    path = objects.shared()
    found = describe(path)
    data = path.read_bytes()
    assert found["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert (found["bytes"], found["file"]) == (len(data), "kernel.so")
    assert (found["format"], found["what"], found["type"], found["type_number"]) == (
        "elf",
        "shared object",
        "ET_DYN",
        3,
    )
    assert (found["class"], found["endianness"]) == ("ELF64", "little")
    assert found["exported"] == nm(path, "--dynamic", "--defined-only")
    assert {"rms_norm", "version"} <= set(found["exported"])
    assert not {"not_seen", "hidden", "_Z8not_seenv"} & set(found["exported"])
    assert found["undefined"] == nm(path, "--dynamic", "--undefined-only")
    assert "helper" in found["undefined"]
    assert found["stripped"] is False
    assert "kernels" not in found
    identity = found["identity"]
    assert identity["soname"] == "libkernel.so.1"
    assert identity["runpath"] == "$ORIGIN/lib"
    assert identity["rpath"] is identity["interpreter"] is None
    assert identity["needed"] == ["libm.so.6"]
    assert len(identity["build_id"]) == 40
    assert any(banner.startswith("GCC: (") for banner in identity["compilers"])
    assert found["remarks"] == []


def test_machine_sections_and_build_id_are_what_pyelftools_reads(objects: Objects) -> None:
    path = objects.shared()
    found = describe(path)
    with path.open("rb") as stream:
        elf_file = ELFFile(stream)
        assert found["machine"] == elf_file.header.e_machine
        assert found["flags"] == f"{elf_file.header.e_flags:#x}"
        assert found["section_count"] == elf_file.num_sections()
        sections = list(elf_file.iter_sections())[1:]
        assert [row["name"] for row in found["sections"]] == [section.name for section in sections]
        assert [row["type"] for row in found["sections"]] == [section["sh_type"] for section in sections]
        for row, section in zip(found["sections"], sections, strict=True):
            stored = section["sh_type"] != "SHT_NOBITS" and section["sh_size"]
            expected = f"sha256:{hashlib.sha256(section.data()).hexdigest()}" if stored else None
            assert (row["bytes"], row["digest"]) == (section["sh_size"], expected)
        notes = elf_file.get_section_by_name(".note.gnu.build-id")
        assert isinstance(notes, NoteSection)
        assert found["identity"]["build_id"] == next(notes.iter_notes())["n_desc"]


def test_an_object_file_offers_its_own_symbols(objects: Objects) -> None:
    found = describe(objects.object())
    assert (found["what"], found["type"]) == ("object file", "ET_REL")
    assert found["exported"] == ["rms_norm", "version"]
    assert {"helper"} <= set(found["undefined"])
    assert found["identity"]["build_id"] is None
    assert found["identity"]["needed"] == []


def test_executables_name_their_loader(objects: Objects) -> None:
    moving = describe(objects.make("main", "-pie", "-fPIE", "main.cpp"))
    assert moving["what"] == "position-independent executable"
    assert moving["identity"]["interpreter"].startswith("/lib")
    fixed = describe(objects.make("main-fixed", "-no-pie", "main.cpp"))
    assert (fixed["what"], fixed["type"]) == ("executable", "ET_EXEC")
    whole = describe(objects.make("main-static", "-static-pie", "-nostdlib", "-fPIE", "plain.cpp", "-Wl,-e,0"))
    assert (whole["what"], whole["identity"]["interpreter"]) == ("position-independent executable", None)


def test_without_a_build_id_none_is_made_up(objects: Objects) -> None:
    bare = objects.make("bare.so", "-shared", "-fPIC", "plain.cpp", "-Wl,--build-id=none")
    assert describe(bare)["identity"]["build_id"] is None
    named = objects.make("named.so", "-shared", "-fPIC", "plain.cpp", "-Wl,--build-id=0x0123456789abcdef")
    assert describe(named)["identity"]["build_id"] == "0123456789abcdef"


def test_a_stripped_object_still_offers_what_the_loader_sees(objects: Objects) -> None:
    path = objects.make("stripped.so", "-s", "-shared", "-fPIC", "kernel.cpp")
    found = describe(path)
    assert found["stripped"] is True
    assert found["exported"] == nm(path, "--dynamic", "--defined-only")
    assert all(row["name"] != ".symtab" for row in found["sections"])


def test_debug_information_alone_is_no_contradiction(objects: Objects) -> None:
    path = objects.make("debug.so", "-g", "-shared", "-fPIC", "kernel.cpp")
    only = objects.folder / "only.debug"
    subprocess.run(["objcopy", "--only-keep-debug", str(path), str(only)], check=True)
    assert describe(only)["identity"]["build_id"] == describe(path)["identity"]["build_id"]


def test_without_a_section_table_the_loader_is_still_asked(objects: Objects) -> None:
    data = bytearray(objects.shared().read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[58:64] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    found = describe_bytes(bytes(data), "kernel.so")
    assert found["identity"]["soname"] == "libkernel.so.1"
    assert len(found["identity"]["build_id"]) == 40
    assert (found["sections"], found["exported_count"], found["undefined_count"]) == ([], None, None)
    assert found["remarks"] == ["its symbols are not known: it has no section table that names them"]


def test_an_object_of_32_bits(objects: Objects) -> None:
    if shutil.which("as") is None:
        pytest.skip("needs as: apt-get install binutils")
    path = objects.make("plain32.o", "-m32", "-c", "plain.cpp")
    found = describe(path)
    assert (found["class"], found["machine"], found["exported"]) == ("ELF32", "EM_386", ["_Z6answeri"])


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("little", [True, False])
def test_classes_and_byte_orders_by_hand(bits: int, little: bool) -> None:
    parts = [Part(".text", PROGBITS, b"code", 6), *symbols([Sym("one", 1, 0, 4), Sym("two", 0)], 3, bits, little)]
    found = describe_bytes(elf(parts, machine=21, bits=bits, little=little), "hand.o")
    assert (found["class"], found["endianness"]) == (f"ELF{bits}", "little" if little else "big")
    assert (found["machine"], found["exported"], found["undefined"]) == ("EM_PPC64", ["one"], ["two"])
    assert found["sections"][0]["digest"] == f"sha256:{hashlib.sha256(b'code').hexdigest()}"


def test_long_lists_are_counted_whole_and_shown_in_part() -> None:
    names = [f"symbol_{number:04}" for number in range(2000)]
    parts = [Part(".text", PROGBITS, b"c", 6), *symbols([Sym(name, 1) for name in reversed(names)], 3)]
    parts += [Part(f".part.{number}", PROGBITS, b"x") for number in range(600)]
    found = describe_bytes(elf(parts), "long.o")
    assert (found["exported_count"], found["exported"]) == (2000, names[:256])
    assert (found["section_count"], len(found["sections"])) == (605, 512)
    assert found["remarks"] == ["512 of 605 sections are listed"]


def test_nothing_is_run_loaded_or_opened_for_writing(objects: Objects) -> None:
    program = (
        "import sys\n"
        "from akf.build.inspect import describe\n"
        "describe(sys.argv[1])\n"  # everything is imported by now
        "seen = []\n"
        "sys.addaudithook(lambda event, arguments: seen.append((event, arguments)))\n"
        "describe(sys.argv[1])\n"
        "print(sorted({(e, a[0] if e == 'open' else '', a[2] & 3 if e == 'open' else '') for e, a in seen}))\n"
    )
    path = objects.make("main", "-pie", "-fPIE", "main.cpp")
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, check=True, text=True)
    assert done.stdout == f"{[('open', str(path), 0)]}\n"
