package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/internal/asowner"
)

// inDataDirectory are the names of what a controller keeps in its data directory,
// up to the first dot.
var inDataDirectory = []string{"jetstream", "audit", "scratch", "workers", "manifests", "lock", "room", "store", "bus", "token"}

// workersDirectory returns where, in the directory of the durable state, the
// supervisor keeps the processes of a plan.
func workersDirectory(data string) string { return filepath.Join(data, "workers") }

// handOver gives the data directory to an account, with what the controller keeps
// there, which is that of the account before or root's. It follows no links, and
// gives away nothing that has another name elsewhere: the account before could
// have put anything there. A directory with other files in it stays as it is, and so does
// one that a controller uses.
func handOver(dir string, to account) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); errors.Is(err, unix.ENOENT) && to.UID == 0 {
		return nil
	} else if err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if int(st.Uid) != to.UID {
		lock, err := lockExisting(dir)
		if err != nil {
			return err
		}
		defer lock.Close() // without effect if there is none
	}
	h := &handing{dir: dir, from: st.Uid, to: to}
	top, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(top)
	names, err := namesIn(top)
	if err != nil {
		return err
	}
	var others []string
	for _, name := range names {
		if first, _, _ := strings.Cut(name, "."); !slices.Contains(inDataDirectory, first) {
			others = append(others, name)
		}
	}
	if int(st.Uid) == to.UID {
		h.look = true
	} else if len(others) > 0 {
		return fmt.Errorf("the data directory %s is of user %d and is to be given to %s, but has files in it that are not the controller's: %s; move them, choose another --data-dir, or give it away yourself (chown -R %d %s)",
			dir, st.Uid, to, strings.Join(others[:min(len(others), 5)], ", "), to.UID, dir)
	} else if err := unix.Fchown(top, 0, to.GID); err != nil { // meanwhile nobody changes it
		return &fs.PathError{Op: "chown", Path: dir, Err: err}
	}
	for _, name := range names {
		if !slices.Contains(others, name) {
			if err := h.give(top, name, dir, 0); err != nil {
				return err
			}
		}
	}
	if h.look {
		return nil
	}
	if err := unix.Fchown(top, to.UID, to.GID); err != nil {
		return &fs.PathError{Op: "chown", Path: dir, Err: err}
	}
	return nil
}

// lockExisting locks a data directory, as a controller does that uses it; nil if none has
// ever used it.
func lockExisting(dir string) (*os.File, error) {
	f, err := asowner.Open(filepath.Join(dir, bus.LockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := bus.Lock(f, dir); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// handing is one handing over.
type handing struct {
	dir  string
	from uint32
	to   account
	look bool // do not change anything, but report what is not the account's
}

// deepest is how deep directories may be nested in a data directory.
const deepest = 64

// give gives away one file, and what is in it if it is a directory.
func (h *handing) give(parent int, name, within string, depth int) error {
	path := filepath.Join(within, name)
	fail := func(err error) error { return &fs.PathError{Op: "chown", Path: path, Err: err} }
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fail(err)
	}
	kind := st.Mode & unix.S_IFMT
	switch theirs := int(st.Uid) == h.to.UID; {
	case h.look && !theirs:
		return fmt.Errorf("the data directory %s belongs to %s, but %s is of user %d; give it back (chown -R -h %d %s), or choose another --data-dir", h.dir, h.to, path, st.Uid, h.to.UID, h.dir)
	case !theirs && st.Uid != h.from && st.Uid != 0:
		return fail(fmt.Errorf("it is of user %d, who is neither root nor the owner of the data directory", st.Uid))
	case kind == unix.S_IFREG && st.Nlink > 1 && !theirs:
		return fail(errors.New("it has another name elsewhere (a hard link); remove that, or the file"))
	case kind != unix.S_IFREG && kind != unix.S_IFDIR && kind != unix.S_IFSOCK:
		return fail(errors.New("it is neither a file nor a directory; remove it"))
	}
	if kind == unix.S_IFDIR {
		if depth == deepest {
			return fail(errors.New("directories are nested too deeply"))
		}
		if !h.look {
			if err := own(fd, 0, h.to.GID); err != nil { // meanwhile nobody changes it
				return fail(err)
			}
		}
		inside, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return fail(err)
		}
		defer unix.Close(inside)
		names, err := namesIn(inside)
		if err != nil {
			return fail(err)
		}
		for _, n := range names {
			if err := h.give(inside, n, path, depth+1); err != nil {
				return err
			}
		}
	}
	if h.look {
		return nil
	}
	if err := own(fd, h.to.UID, h.to.GID); err != nil {
		return fail(err)
	}
	return nil
}

// own changes the owner of what a descriptor of any kind stands for.
func own(fd, uid, gid int) error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) }

// namesIn returns the names in a directory, sorted.
func namesIn(fd int) ([]string, error) {
	again, err := unix.Dup(fd)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "directory")
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}
