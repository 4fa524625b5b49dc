"""Options of makers and mounts: what tuners give is taken, what leads elsewhere is refused."""

from __future__ import annotations

import pytest

from dbdyno.host.volumes.mounts import OPTIONS, any_maker_fault, maker_fault, mount_fault
from dbdyno.host.volumes.volume import MKFS


@pytest.mark.parametrize(
    ("filesystem", "words"),
    [
        ("ext4", "-b 4096 -O ^has_journal,extent -E stride=16,stripe_width=64,lazy_itable_init=0"),
        ("ext4", "-b4096 -I 256 -i 16384 -m 0 -J size=128 -T largefile"),
        ("ext2", "-b 1k -N 10000"),
        ("xfs", "-b size=4096 -d agcount=8,su=64k,sw=4 -i size=512 -l size=64m,su=64k -s size=4096"),
        ("xfs", "-m reflink=0,rmapbt=0,crc=1"),
        ("btrfs", "-n 16k -s 4096 -m single -d dup -O no-holes,^extref --csum=xxhash -M"),
        ("jfs", "-s 16"),
        ("f2fs", "-o 5 -s 2 -z 1 -O extra_attr,inode_checksum"),
    ],
)
def test_what_tuners_give_is_taken(filesystem: str, words: str) -> None:
    assert maker_fault(filesystem, words.split()) is None
    assert any_maker_fault(words.split()) is None


@pytest.mark.parametrize(
    ("filesystem", "words"),
    [
        ("btrfs", "/tmp/victim.img"),
        ("btrfs", "victim.img"),
        ("btrfs", "-M victim.img"),
        ("btrfs", "-- victim.img"),
        ("btrfs", "--rootdir /etc"),
        ("btrfs", "-r/etc"),
        ("ext4", "-d /etc/ssl"),
        ("ext4", "-d/etc/ssl"),
        ("ext4", "-J device=/dev/sdb"),
        ("ext4", "-J size=4,device=sdb"),
        ("ext4", "-O journal_dev"),
        ("ext4", "-O extent,journal_dev"),
        ("ext4", "-z /tmp/undo"),
        ("ext4", "-l /tmp/blocks"),
        ("ext4", "-E offset=4096"),
        ("ext4", "-Fz undo"),
        ("ext4", "-L other"),
        ("ext4", "-b"),
        ("xfs", "-l logdev=/dev/sdb,size=64m"),
        ("xfs", "-l internal=0"),
        ("xfs", "-d name=/tmp/victim.img"),
        ("xfs", "-d file=1"),
        ("xfs", "-r rtdev=/dev/sdb"),
        ("xfs", "-p /etc/passwd"),
        ("xfs", "-c options=/tmp/a"),
        ("jfs", "-j /dev/sdb"),
        ("f2fs", "-c /dev/sdb"),
    ],
)
def test_what_leads_elsewhere_is_refused(filesystem: str, words: str) -> None:
    fault = maker_fault(filesystem, words.split())
    assert fault is not None
    assert fault.hint


def test_each_maker_has_its_options() -> None:
    assert set(OPTIONS) == set(MKFS)


@pytest.mark.parametrize(
    "options",
    [
        "noatime,nobarrier,commit=30,data=writeback,barrier=0",
        "nodev,dev,sync,discard,nodiscard",
        "logbufs=8,logbsize=256k,allocsize=64m,inode64",
        "compress=zstd:3,nodatacow,ssd,subvol=a,space_cache=v2",
        "background_gc=off,mode=lfs,fsync_mode=strict",
    ],
)
def test_mount_options_of_the_volume_are_taken(options: str) -> None:
    assert mount_fault(options.split(",")) is None


@pytest.mark.parametrize(
    "option",
    [
        *("logdev=sdb", "rtdev=sdb", "journal_path=sdb", "journal_dev=0x811", "device=sdb", "jdev=sdb"),
        *("bind", "rbind", "loop", "loop=loop0", "offset=4096", "remount", "move", "make-rshared", "shared"),
        *("x-mount.mkdir", "X-mount.subdir=a", "helper=a", "verity.hashdevice=sdb", "user", "errors=panic"),
    ],
)
def test_a_mount_option_that_leads_elsewhere_is_refused(option: str) -> None:
    fault = mount_fault(("noatime", option))
    assert fault is not None
    assert option in fault.reason
