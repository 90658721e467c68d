"""Ways out of the shell, each tried: no command reads or changes the worker's machine, its secrets or other sessions."""

import errno
import os
import platform
import re
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from looking import SECRET, text

from workers.tools.sandbox import syscalls, workdir

pytestmark = pytest.mark.usefixtures("bubblewrap")

# Files


def test_links_that_the_shell_makes_lead_nowhere(call, root, secret):
    (root / "state" / "kept").write_text(SECRET)
    for number, target in enumerate([secret, root / "state" / "kept", "/proc/1/root" + str(secret), "/etc/shadow"]):
        output = text(call("bash", command=f"ln -s {target} link{number}; cat link{number}; echo changed > link{number}"))
        assert SECRET not in output
        assert "exit code: 1" in output
        for result in (
            call("read", file_path=f"link{number}"),
            call("edit", file_path=f"link{number}", old_string=SECRET, new_string="changed"),
            call("write", file_path=f"link{number}", content="changed"),
            call("grep", pattern=".", path=f"link{number}"),
        ):
            assert result.is_error
            assert SECRET not in text(result)
    assert secret.read_text() == (root / "state" / "kept").read_text() == SECRET


def test_a_folder_that_becomes_a_link_while_the_shell_runs_is_not_followed_by_the_file_tools(call, secret):
    swap = f"mkdir real; while :; do mv real d; mv d real; ln -s {secret.parent} d; rm d; done"
    over = threading.Event()
    swapper = threading.Thread(target=call, args=("bash",), kwargs={"command": swap, "cancelled": over})
    swapper.start()
    try:
        for _ in range(200):
            assert SECRET not in text(call("read", file_path="d/secret"))
            call("write", file_path="d/new", content="x")
    finally:
        over.set()
        swapper.join()
    assert [p.name for p in secret.parent.iterdir()] == ["secret"]


def test_no_hard_link_reaches_outside(call, secret):
    assert call("bash", command=f"ln {secret} link").is_error
    assert call("bash", command="ln /usr/bin/env link || ln -L /proc/self/exe link").is_error


def test_nothing_is_written_outside(call, root, secret):
    other = workdir.session_root("sesn_2")
    places = [secret.parent, root, root / "state", other / "files", Path.home(), Path("/tmp"), Path("/etc"), Path(__file__).parent]
    for place in places:
        call("bash", command=f"mkdir -p {place}; echo x > {place}/assent-escape")
    assert not [place for place in places if (place / "assent-escape").exists()]


def test_every_place_that_can_be_written_has_a_limit(call, files, setting):
    setting("shell_temporary_bytes", 1 << 20)
    output = text(call("bash", command="find / -xdev -type d -writable; find /proc /dev -type d -writable; df --output=target -a"))
    places = {line for line in output.split("\n") if line.startswith("/") and not line.startswith("/proc/")}
    writable = [place for place in sorted(places) if not call("bash", command=f"touch {place}/x && rm {place}/x").is_error]
    assert writable == ["/dev/shm", "/tmp", str(files)]
    for place in writable[:2]:
        assert "No space left" in text(call("bash", command=f"head -c 2000000 /dev/zero > {place}/x"))


def test_nothing_of_the_kernel_can_be_written(call):
    look = "find /proc -maxdepth 5 -path '/proc/[0-9]*' -prune -o -type f -writable -print 2> errors"
    output = text(call("bash", command=f"{look}; : >> /proc/self/oom_score_adj"))
    assert output == "stderr:\nbash: line 1: /proc/self/oom_score_adj: Read-only file system\n\nexit code: 1\ndirectory: ."


def test_no_private_key_lies_beside_the_certificates(call):
    output = text(call("bash", command="find /etc -name '*private*' -o -name '*.key'; ls -A /etc/ssl /etc/pki 2>&-"))
    assert not [word for word in ("private", ".key") if word in output]


def test_no_device_is_there_and_none_can_be_made(call):
    output = text(call("bash", command="ls /dev; mknod null c 1 3; mknod disk b 8 0; mknod /tmp/null c 1 3"))
    names = set(output.split("stdout:\n")[1].split("\n\n")[0].split("\n"))
    assert names <= {
        "console",
        "core",
        "fd",
        "full",
        "null",
        "ptmx",
        "pts",
        "random",
        "shm",
        "stderr",
        "stdin",
        "stdout",
        "tty",
        "urandom",
        "zero",
    }
    assert output.count("Operation not permitted") == 3


def test_a_set_user_id_bit_gives_nothing(call):
    look = "./own -pc 'grep -h -E \"NoNewPrivs|CapEff\" /proc/self/status'"
    output = text(call("bash", command=f"cp /bin/bash own; chmod 6755 own; {look}; grep -v nosuid /proc/mounts"))
    assert "CapEff:\t0000000000000000\nNoNewPrivs:\t1" in output
    assert output.endswith("exit code: 1\ndirectory: .")  # every mount has nosuid


# Secrets and other processes


WORKER = """
from workers.tools import execution
from workers.tools.builtin.agent_toolset import AGENT_TOOLSET
from workers.tools.kinds import ToolContext
from workers.tools.sandbox import workdir
root = workdir.session_root("sesn_1")
look = "cat /proc/*/environ /proc/*/cmdline /proc/*/maps; env; ls -l /proc/*/fd; grep -rs hidden-from /etc /tmp /dev/shm ~ /run"
context = ToolContext("sevt_call", "sesn_1", root, 60)
for block in execution.execute(AGENT_TOOLSET["bash"], context, {"command": look}).content:
    print(block["text"])
"""


def test_a_workers_secrets_are_nowhere_in_the_sandbox(files, tmp_path):
    env = {**os.environ, "ANTHROPIC_API_KEY": SECRET + "-key", "DATABASE_URL": f"postgresql://{SECRET}@localhost"}
    output = subprocess.run([sys.executable, "-c", WORKER], env=env, capture_output=True, text=True, check=True).stdout
    assert f"HOME={files}" in output
    assert SECRET not in output


@pytest.mark.parametrize("look", ["root", "cwd"])
def test_no_process_leads_to_the_machines_files(call, secret, look):
    output = text(call("bash", command=f"for p in /proc/[0-9]*; do cat $p/{look}{secret} $p/{look}/../../..{secret}; done"))
    assert "No such file" in output
    assert SECRET not in output


def test_no_process_of_the_machine_is_seen(call):
    output = text(call("bash", command="cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
    assert "bwrap" in output
    assert not [word for word in ("import keeper;", sys.executable, "-m pytest") if word in output]


def test_signals_end_nothing_outside(call):
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        assert "No such process" in text(call("bash", command=f"kill -9 {sleeper.pid}"))
        assert sleeper.poll() is None
        sleeper.kill()


def test_open_files_of_the_worker_are_not_handed_on(call, secret):
    with secret.open("r+") as file:
        os.set_inheritable(file.fileno(), True)
        output = text(call("bash", command=f"cat <&{file.fileno()}; echo changed >&{file.fileno()}; cd /proc/$$/fd; echo *"))
    assert "0 1 2 250 3\n" in output  # 3 is the shell's own view of the folder
    assert secret.read_text() == SECRET


# Network


@pytest.fixture
def server():
    """A service on this machine's loopback, as Postgres and Redis are: it greets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet():
            while True:
                try:
                    with listener.accept()[0] as taken:
                        taken.sendall(b"welcome\n")
                except OSError:
                    return

        threading.Thread(target=greet, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def test_services_of_the_machine_are_out_of_reach(call, server):
    output = text(call("bash", command=f"exec 3<>/dev/tcp/127.0.0.1/{server} && head -1 <&3"))
    assert "refused" in output
    assert "welcome" not in output
    assert call("bash", command="getent hosts example.com || (: < /dev/tcp/192.0.2.1/53)").is_error


def test_the_network_is_there_if_the_setting_says_so(call, server, setting):
    setting("shell_network", "true")
    assert "welcome" in text(call("bash", command=f"exec 3<>/dev/tcp/127.0.0.1/{server} && head -1 <&3"))


def test_sockets_without_a_file_are_out_of_reach(perl):
    name = f"assent-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        line = f'socket(S, PF_UNIX, SOCK_STREAM, 0); print connect(S, pack("S a*", AF_UNIX, "\\0{name}")) ? "in" : "out: $!"'
        assert "out: Connection refused" in perl(line)


def test_a_command_has_only_the_socket_families_that_it_needs(perl, system_calls):
    # Network namespaces do not separate AF_VSOCK, by which a virtual machine and its host talk. A family has 32 bits.
    for name in ("socket", "socketpair"):
        for family in ("$_", "$_ | 1 << 32"):
            made = f'syscall({system_calls[name]}, {family}, 2, 0, $sides = pack("ii", 0, 0))'
            line = f'for (0..60) {{ print $_, ":", {made} < 0 ? $! + 0 : 0, " " }}'
            errors = dict(re.findall(r"(\d+):(\d+)", perl(line)))
            assert len(errors) == 61
            refused = {int(family) for family, error in errors.items() if int(error) == errno.EAFNOSUPPORT}
            assert refused == set(range(61)) - {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only this machine has a second table of system calls")
def test_no_other_way_into_the_kernel_makes_a_socket(call, files, perl):
    # A program that calls socket(AF_VSOCK, SOCK_STREAM, 0) by the 32-bit table and exits with the error.
    # `test_dangerous_system_calls_are_refused` has io_uring.
    code = bytes.fromhex("b867010000bb28000000b90100000031d2cd80f7d889c7b83c0000000f05")
    header = struct.pack("<4s5B7x2HI3QI6H", b"\x7fELF", 2, 1, 1, 0, 0, 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<2I6Q", 1, 5, 0, 0x400000, 0x400000, 120 + len(code), 120 + len(code), 4096)
    (files / "narrow").write_bytes(header + segment + code)
    (files / "narrow").chmod(0o755)
    output = text(call("bash", command="./narrow"))
    assert f"exit code: {errno.ENOSYS}" in output or "exit code: 139" in output  # a kernel without that table ends the program
    assert f"-1 {errno.ENOSYS}" in perl('print syscall(0x40000000 | 41, 40, 1, 0), " ", $! + 0')


# The kernel


def test_dangerous_system_calls_are_refused(perl, system_calls):
    refused = {**system_calls, **syscalls._NEW}
    for name in syscalls._BY_ARGUMENT:
        del refused[name]
    output = perl(f"for ({', '.join(map(str, refused.values()))}) {{ print syscall($_, 0, 0, 0, 0, 0), $! + 0, qq(\\n) }}")
    assert output.startswith("stdout:\n" + "-11\n" * len(refused) + "\n")


def test_no_process_gets_namespaces_of_its_own(call, perl, system_calls):
    for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000):
        assert "-1 1\n" in perl(f'print syscall({system_calls["clone"]}, {flag | 17}, 0, 0, 0, 0), " ", $! + 0, "\\n"')
    assert "-1 38\n" in perl('print syscall(435, 0, 0), " ", $! + 0, "\\n"')
    assert call("bash", command="unshare -Ur true || unshare -m true || mount -t tmpfs x /tmp").is_error


def test_no_input_is_pushed_into_a_terminal(perl):
    # TIOCSTI on a terminal of the process's own: older kernels allow it, so the filter must refuse it.
    line = """
        use POSIX; fork and do { wait; exit }; POSIX::setsid();
        open(M, "+<", "/dev/ptmx") or die; $zero = $number = pack("i", 0);
        ioctl(M, 0x40045431, $zero); ioctl(M, 0x80045430, $number); $name = "/dev/pts/" . unpack("i", $number);
        open(T, "+<", $name) or die "$name: $!"; $c = "x"; print ioctl(T, 0x5412, $c) ? "pushed" : "not: $!"
    """
    assert "not: Operation not permitted" in perl(line)
    assert "/dev/tty: No such device" in perl('open(T, "+<", "/dev/tty") or print "/dev/tty: $!"')
