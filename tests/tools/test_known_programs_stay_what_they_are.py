"""The policy knows programs by their names. No file of a session can change what such a program does in the shell."""

from looking import text

from workers.tools.sandbox import bubblewrap as sandbox


def test_no_folder_in_which_programs_are_looked_for_can_be_written(call, bubblewrap):
    places = [*(f"{folder}/rg" for folder in sandbox.PATH.split(":")), "/etc/ld.so.preload", "/lib/x.so", "/lib64/x.so"]
    for place in places:
        result = call("bash", command=f"mkdir -p {place.rpartition('/')[0]}; echo x | tee {place}; test -e {place} && echo written")
        assert "written" not in text(result), place


def test_configuration_that_a_session_writes_is_not_read_by_curl_and_wget(call, files, bubblewrap):
    (files / "source").write_text("x\n")
    (files / ".curlrc").write_text(f"output = {files}/leak\n")
    result = call("bash", command=f"cd / && curl -s file://{files}/source")
    assert "x" in text(result)
    assert not (files / "leak").exists()
    (files / ".wgetrc").write_text("no such = line\n")
    assert ".wgetrc" not in text(call("bash", command="wget -q http://127.0.0.1:1/"))
