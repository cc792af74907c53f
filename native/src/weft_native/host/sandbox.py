"""What a worker's process may not do: everything but compute, and talk over the sockets that it has.

Called while the process has one thread, since some of this holds for the thread that asks for it, and for those that it
starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import resource
import signal
import site
import struct
import sys
import sysconfig

import landlock
import pyseccomp as seccomp

# Paths that a worker reads while it runs: modules that are imported late, and what the machine has.
_READABLE = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system", "/etc/localtime")
_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS = 1, 8
_CAPABILITIES, _CAP_DAC_READ_SEARCH = 0x20080522, 1 << 2  # the version of capset, and its bit
_CLONE_THREAD = 0x10000
# New sockets, new processes and programs, other processes, and the kernel's doors that nothing here uses.
_REFUSED = (
    "socket connect bind listen accept accept4 execve execveat fork vfork ptrace process_vm_readv "
    "process_vm_writev process_madvise pidfd_open pidfd_getfd pidfd_send_signal kcmp "
    "io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd keyctl add_key request_key "
    "unshare setns mount umount2 pivot_root chroot mknod mknodat "
    "open_by_handle_at name_to_handle_at fanotify_init inotify_init inotify_init1 "
    "unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat mkdir mkdirat rmdir truncate creat "
    "chmod fchmod fchmodat chown fchown fchownat lchown setxattr lsetxattr fsetxattr "
    "setuid setgid setreuid setregid setresuid setresgid setgroups capset personality "
    "shmget msgget semget mq_open init_module finit_module delete_module kexec_load reboot swapon swapoff "
    "setrlimit acct quotactl settimeofday clock_settime sethostname setdomainname iopl ioperm"
).split()
WRITTEN_BYTES = 1 << 20  # of what a worker writes to stderr
CLIENT_BYTES = 512 << 20  # that a client of XLA takes for itself, most of them reserved and never touched
ADDRESSES = 8 << 30  # beside: code, stacks, and what is reserved


def enclose(data_bytes: int) -> None:
    """Gives up everything that a worker does not need. `data_bytes` is what the process may take beside what it has.

    Raises OSError where this system refuses a part of it.
    """
    _with_the_parent()
    with open("/proc/self/oom_score_adj", "w") as file:  # the system's first choice when it is short of memory
        file.write("1000")
    nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    _limit(data_bytes)
    _no_files()
    if nobody is not None:
        _become(nobody.pw_uid, nobody.pw_gid)
        _with_the_parent()  # forgotten with the change of the user
    _no_calls()


def _with_the_parent() -> None:
    """The process ends with the one that forked it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _become(user: int, group: int) -> None:
    """Another user, who may read what root may, where Landlock lets it: Python may be installed in root's home."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.setgroups([])
    os.setresgid(group, group, group)
    libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresuid(user, user, user)
    header = struct.pack("Ii", _CAPABILITIES, 0)
    if libc.capset(header, struct.pack("6I", _CAP_DAC_READ_SEARCH, _CAP_DAC_READ_SEARCH, 0, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capset")


def _limit(data_bytes: int) -> None:
    with open("/proc/self/statm") as file:
        pages = file.read().split()
    page = resource.getpagesize()
    extra = data_bytes + CLIENT_BYTES
    for kind, limit in (
        (resource.RLIMIT_AS, int(pages[0]) * page + ADDRESSES + extra),
        (resource.RLIMIT_DATA, int(pages[5]) * page + extra),
    ):
        resource.setrlimit(kind, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN_BYTES, WRITTEN_BYTES))


def _no_files() -> None:
    """Files of Python and of weft can be read, no others."""
    rules = landlock.Ruleset()
    found = [sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *site.getsitepackages(), *sys.path]
    readable = {os.path.realpath(path) for path in (*found, *_READABLE) if path}
    reading = landlock.FSAccess.READ_FILE | landlock.FSAccess.READ_DIR
    for path in sorted(readable - {"/", os.path.realpath(os.path.expanduser("~"))}):
        if os.path.exists(path):
            rules.allow(path, rules=reading if os.path.isdir(path) else landlock.FSAccess.READ_FILE)
    rules.apply()


def _no_calls() -> None:
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    refused = seccomp.ERRNO(errno.EPERM)
    for name in _REFUSED:
        try:
            rules.add_rule(refused, name)
        except OSError:  # this machine has no such call
            pass
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")  # its flags are out of sight: threads come by clone
    rules.add_rule(refused, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, 0))
    for bit in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC):
        rules.add_rule(refused, "open", seccomp.Arg(1, seccomp.MASKED_EQ, bit, bit))
        rules.add_rule(refused, "openat", seccomp.Arg(2, seccomp.MASKED_EQ, bit, bit))
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "openat2")
    # Signals for itself are needed, by abort and by threads.
    me = os.getpid()
    for name in ("kill", "tgkill"):
        rules.add_rule(refused, name, seccomp.Arg(0, seccomp.NE, me))
    rules.add_rule(refused, "tkill", seccomp.Arg(0, seccomp.NE, me))
    rules.add_rule(refused, "prlimit64", seccomp.Arg(2, seccomp.NE, 0))  # reading a limit is fine
    rules.load()
