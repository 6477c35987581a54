"""Every route is one folder: a strict declaration, equal to the closed list of the schema, and a module."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from akf.contracts.gates import BINARY_STAGES
from akf.contracts.models.base import Route as Names
from akf.contracts.problems import UsageError
from akf.contracts.rules import routes as rules
from akf.contracts.rules import soc
from akf.routes import declaration as declarations
from akf.routes.declaration import FOLDER, Declaration, declaration
from akf.routes.route import route, routes
from akf.routes.sandbox import WRITTEN

EVERY = get_args(Names)
ROOTS = ("work", "env", "packages", "toolkit", "headers")


def text_of(name: str) -> str:
    return (FOLDER / name / "route.toml").read_text(encoding="utf-8")


def test_the_closed_list_is_the_list_of_folders() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/route.toml")}
    assert folders == set(EVERY)
    assert {name for names in rules.ROUTES.values() for name in names} == set(EVERY)
    assert [each.name for each in routes()] == list(EVERY)


def test_nothing_outside_its_folder_names_a_route_but_the_closed_lists() -> None:
    """Adding a route touches one folder and the closed list; `triton_ascend` is a word of the AIKG wire, too."""
    package = FOLDER.parent
    allowed = {"contracts/models", "contracts/rules", "contracts/catalogue", "cli/help.txt", "frameworks", "build"}
    allowed |= {"cli/signatures/services.py", "client", "fabric", "server"}
    found = set()
    for path in package.rglob("*"):
        inside = path.relative_to(package).as_posix()
        named = path.suffix in {".py", ".toml", ".txt"} and not inside.startswith("routes/")
        if named and any(f'"{name}"' in path.read_text(encoding="utf-8") for name in EVERY if name != "host_cpp"):
            found.add(inside)
    assert {each for each in found if not each.startswith(tuple(allowed))} == set()


@pytest.mark.parametrize("name", EVERY)
class TestDeclaration:
    def test_platform_and_abi_are_those_of_the_rules(self, name: str) -> None:
        data = declaration(name)
        assert name in rules.ROUTES[data.platform]
        assert data.abi == {"ascend": "ascend", "host": "c", "cuda": "cubin"}[data.platform]
        assert data.claims.toolkit == rules.TOOLKITS[data.platform]

    def test_a_missing_tool_is_said_with_its_remedy(self, name: str) -> None:
        for tool in declaration(name).tools:
            assert any(word in tool.get for word in ("install", "akf toolchain add", "build ")), tool.name

    def test_stages_end_in_a_binary_and_are_shown_by_a_file_that_is_kept(self, name: str) -> None:
        data = declaration(name)
        assert data.stages[-1].name in {*BINARY_STAGES, "cpu_sim_so"}
        assert len({stage.name for stage in data.stages}) == len(data.stages)
        for stage in data.stages:
            output = data.output(stage.file)
            assert output is not None, stage.file
            binary = stage.name in {*BINARY_STAGES, "cpu_sim_so"}
            assert (output.role == "kernel_object") is binary, stage.file
            assert (output.trust == "data") is not binary, stage.file

    def test_host_parts_are_outputs_that_run_inside_the_engine(self, name: str) -> None:
        data = declaration(name)
        for part in data.parts:
            output = data.output(part.file)
            assert output is not None
            assert (output.role, output.trust) == (part.file.removesuffix(".so"), "host_code")
            assert part.file not in {stage.file for stage in data.stages}

    def test_device_code_is_never_called_host_code(self, name: str) -> None:
        data = declaration(name)
        for output in data.outputs:
            if output.role in {"host_tiling", "infer_shape", "aclnn", "torch_binding"}:
                assert output.trust == "host_code"
        object_of = data.output(data.stages[-1].file)
        assert object_of is not None
        loaded = data.platform == "host" or object_of.file.endswith(".so")
        assert object_of.trust == ("host_code" if loaded else "device_code")

    def test_every_tool_is_needed_by_a_stage_or_the_emulation_or_is_another_compiler(self, name: str) -> None:
        data = declaration(name)
        needed = {need for stage in data.stages for need in stage.needs}
        needed |= {need for part in data.parts for need in part.needs}
        needed |= set(data.emulation.needs if data.emulation is not None else ())
        assert {tool.name for tool in data.tools} - needed <= {"clang++"}

    def test_soc_names_are_akfs_and_families_are_whole(self, name: str) -> None:
        data = declaration(name)
        families = {soc.family(each) for each in data.soc.names}
        if data.platform == "ascend":
            assert None not in families
            assert set(data.soc.families) | {each for each in families if each} == set(data.claims.families)
            for family in families & {"ascend910b", "ascend910_93"}:
                missing = set(soc.FAMILIES[str(family)]) - set(data.soc.names) - {"ascend910b3"}
                assert missing == set(), "only a SoC that the compiler's own list lacks may be missing"

    def test_the_environment_is_closed_and_caches_point_into_the_build(self, name: str) -> None:
        data = declaration(name)
        variables = data.environment.variables
        assert variables["HOME"] == "{work}/home"
        assert variables["TMPDIR"] == "{work}/tmp"
        for cache in data.environment.caches:
            assert variables[cache] in {f"{{work}}/{each}" for each in WRITTEN}
        assert not set(data.environment.code) & (set(variables) - {"ASCEND_HOME_PATH"})
        for value in variables.values():
            assert all(part.split("}")[0] in ROOTS for part in value.split("{")[1:])

    def test_it_is_refused_with_a_field_too_many_and_with_one_too_few(self, name: str) -> None:
        value = tomllib.loads(text_of(name))
        Declaration.model_validate(value)
        for wrong in ({**value, "more": 1}, {key: each for key, each in value.items() if key != "claims"}):
            with pytest.raises(ValidationError):
                Declaration.model_validate(wrong)


def test_a_declaration_that_names_an_unknown_tool_is_a_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "route.toml").write_text(text_of("host_cpp").replace('needs = ["g++"]', 'needs = ["gxx"]'))
    monkeypatch.setattr(declarations, "FOLDER", tmp_path)
    declarations.declaration.cache_clear()
    with pytest.raises(Exception, match=r"AKF-X401 .*gxx"):
        declarations.declaration("mine")


@pytest.mark.parametrize(
    ("name", "akf", "tool"),
    [
        ("triton_ascend", "ascend910b4", "Ascend910B4"),
        ("triton_ascend", "ascend910_9391", "Ascend910_9391"),
        ("triton_ascend", "ascend950pr_9599", "Ascend950PR_9599"),
        ("triton_ascend", "ascend910b4-1", "Ascend910B4-1"),
        ("triton_ascend", "ascend950dt_95a1", "Ascend950DT_95A1"),
        ("ascendc_direct", "ascend910_9362", "dav-2201"),
        ("ascendc_direct", "ascend950pr_9599", "dav-3510"),
        ("tilelang_ascend_ascendc", "ascend910_9391", "A3"),
        ("catlass_dsl", "ascend950dt_9582", "3510"),
    ],
)
def test_each_route_spells_a_soc_as_its_tools_do(name: str, akf: str, tool: str) -> None:
    assert route(name).target(akf) == tool


@pytest.mark.parametrize(
    ("name", "akf", "hint"),
    [
        ("triton_ascend", "ascend910_93", "akf capability explain|did you mean"),
        ("triton_ascend", "Ascend910B4", "did you mean ascend910b4"),
        ("catlass_dsl", "ascend910b4", "akf capability explain catlass_dsl"),
        ("pypto_pro_cce", "ascend910_9391", "akf capability explain pypto_pro_cce"),
        ("host_cpp", "ascend910b4", "--soc native"),
    ],
)
def test_a_soc_that_a_route_does_not_compile_for_is_refused(
    name: str, akf: str, hint: str, request: pytest.FixtureRequest
) -> None:
    if name == "host_cpp":
        request.getfixturevalue("compiler")
    with pytest.raises(UsageError, match=hint) as caught:
        route(name).target(akf)
    assert caught.value.problems[0].code == "AKF-U401"


def test_a_route_that_is_none_is_refused_with_the_near_one() -> None:
    with pytest.raises(UsageError, match="did you mean triton_ascend"):
        route("triton-ascend")
