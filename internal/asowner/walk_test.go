package asowner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWalk: where Linux has no openat2, the same paths lead to the same files.
func TestWalk(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return base + "/" + name }
	for _, err := range []error{
		os.MkdirAll(at("dir/inner"), 0o755), os.WriteFile(at("file"), []byte("file"), 0o600), os.WriteFile(at("dir/inner/file"), nil, 0o600),
		os.Symlink("file", at("link")), os.Symlink("link", at("twice")), os.Symlink("loop", at("loop")), os.Symlink(at("dir"), at("absolute")),
		os.Symlink("dir/inner/..", at("back")), os.Symlink("nowhere", at("dangling")), os.Symlink("dir/", at("slash")), os.Symlink("/proc/self/cwd", at("cwd")),
		os.Symlink("/proc/self/root", at("root")), os.Symlink("file/", at("file-slash")), unix.Mkfifo(at("fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	identity := func(fd int, err error) (unix.Stat_t, error) {
		var st unix.Stat_t
		if err != nil {
			return st, err
		}
		defer unix.Close(fd)
		return st, unix.Fstat(fd, &st)
	}
	const create = unix.O_RDWR | unix.O_CREAT
	for _, name := range []string{"file", "link", "twice", "loop", "absolute", "absolute/inner/file", "back/inner/file", "back/../file", "dangling", "slash", "slash/inner", "slash/inner/",
		"cwd", "cwd/file", "root/etc/passwd", "dir", "dir/", "dir/.", "dir/..", ".", "", "//file", "./dir//inner///file", "file/", "file/x", "link/", "file-slash", "none", "none/x",
		"dir/none", "fifo", "/../../../../../../../../../../../etc/passwd"} {
		for _, flag := range []int{unix.O_RDONLY | unix.O_NONBLOCK, unix.O_PATH, unix.O_PATH | unix.O_NOFOLLOW, unix.O_RDONLY | unix.O_DIRECTORY, unix.O_RDWR | unix.O_NONBLOCK, unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK, create | unix.O_EXCL, create} {
			if flag&unix.O_CREAT != 0 && strings.HasPrefix(name, "fifo") {
				continue
			}
			how := unix.OpenHow{Flags: uint64(flag | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_MAGICLINKS}
			if flag&unix.O_CREAT != 0 {
				how.Mode = 0o600
			}
			clean := func() {
				for _, made := range []string{"none", "dir/none", "nowhere"} {
					os.Remove(at(made))
				}
			}
			want, wantErr := identity(unix.Openat2(unix.AT_FDCWD, at(name), &how))
			made := func() (list []string) {
				for _, n := range []string{"none", "dir/none", "nowhere"} {
					if _, err := os.Lstat(at(n)); err == nil {
						list = append(list, n)
					}
				}
				return list
			}
			wantMade := strings.Join(made(), " ")
			clean()
			got, err := identity(walk(at(name), int(how.Flags), uint32(how.Mode)))
			if !errors.Is(err, wantErr) || wantMade != strings.Join(made(), " ") || wantMade == "" && err == nil && (got.Ino != want.Ino || got.Dev != want.Dev) {
				t.Errorf("%q with %#x: inode %d, %v, made %v; openat2: inode %d, %v, made %s", name, flag, got.Ino, err, made(), want.Ino, wantErr, wantMade)
			}
			clean()
		}
	}
}
