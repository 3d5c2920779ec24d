"""pip's settings, said again for uv."""

from __future__ import annotations

from pathlib import Path

from benchwright.embedded.indexes import parse_config, uv_environment

LISTED = """\
:env:.default-timeout='180'
:env:.index-url='https://from-environment/simple'
global.extra-index-url='\\nhttps://one/simple\\nhttps://two/simple'
global.index-url='https://from-file/simple'
global.trusted-host='mirror.example'
install.cert='/etc/ca.pem'
freeze.all='true'
not a setting
"""


def test_the_environment_beats_the_file_as_it_does_for_pip() -> None:
    assert parse_config(LISTED)["index-url"] == "https://from-environment/simple"


def test_a_list_over_several_lines_keeps_all_its_entries() -> None:
    assert parse_config(LISTED)["extra-index-url"] == "https://one/simple https://two/simple"


def test_another_command_s_section_says_nothing_about_installing() -> None:
    assert "all" not in parse_config(LISTED)


def test_uv_is_told_what_pip_knows() -> None:
    env = uv_environment(parse_config(LISTED), {})
    assert env["UV_DEFAULT_INDEX"] == "https://from-environment/simple"
    assert env["UV_INDEX"] == "https://one/simple https://two/simple"
    assert env["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert env["UV_INSECURE_HOST"] == "mirror.example"
    assert env["SSL_CERT_FILE"] == "/etc/ca.pem"
    assert env["UV_HTTP_TIMEOUT"] == "180"
    assert env["UV_PYTHON_DOWNLOADS"] == "never"


def test_what_was_said_in_uv_s_own_words_stays() -> None:
    env = uv_environment(parse_config(LISTED), {"UV_INDEX_URL": "https://uv/simple", "SSL_CERT_FILE": "/own.pem"})
    assert "UV_DEFAULT_INDEX" not in env
    assert "SSL_CERT_FILE" not in env


def test_a_folder_of_wheels_that_is_not_there_does_not_stop_uv(tmp_path: Path) -> None:
    there = tmp_path / "wheels"
    there.mkdir()
    env = uv_environment({"find-links": f"{there} {tmp_path}/nowhere file://{tmp_path}/nowhere https://links/"}, {})
    assert env["UV_FIND_LINKS"] == f"{there},https://links/"
    assert "UV_FIND_LINKS" not in uv_environment({"find-links": str(tmp_path / "nowhere")}, {})


def test_without_settings_uv_keeps_its_defaults() -> None:
    assert not {"UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_STRATEGY"} & set(uv_environment({}, {}))
