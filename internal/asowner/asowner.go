// Package asowner lets root use files with the rights of the user who controls their
// path: the first owner other than root of a directory, link or file along it. A
// symbolic link that this user makes leads only to files that this user may use
// anyway, never through /proc to what this process has open, and new files belong to
// this user. What is opened there is a regular file. In processes of other users, and
// on paths that root alone controls, it does what package os does; a file that is read
// whole is bounded everywhere.
//
// Commands that root may run use it for every file that they read or write on a path
// that people name.
package asowner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/ownthread"
)

// owner is who decides where a path leads.
type owner struct {
	uid, gid int    // uid is 0 if root alone decides
	shared   bool   // the path does not exist, and all users may put something there
	path     string // the same file, without links of root's; only of an owner other than root
}

// mostLinks is how many symbolic links a path may have (path_resolution(7)).
const mostLinks = 40

// ownerOf returns the owner of a path. It does not fail for what does not exist,
// nor where its owner is of another user namespace: such an owner has root's rights
// over this process's files already.
func ownerOf(path string) (owner, error) {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return owner{}, err
		}
		path = dir + "/" + path // not cleaned: LINK/.. is not what it looks like
	}
	at, rest, links := "/", strings.Split(path, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		var st unix.Stat_t
		next := filepath.Join(at, name)
		switch err := unix.Lstat(next, &st); {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
			err := unix.Stat(at, &st)
			return owner{shared: err == nil && st.Mode&unix.S_IWOTH != 0}, nil
		case err != nil:
			return owner{}, &fs.PathError{Op: "lstat", Path: next, Err: err}
		case st.Uid != 0 && mapped(int(st.Uid)):
			return owner{uid: int(st.Uid), gid: groupOf(int(st.Uid), int(st.Gid)), path: strings.Join(append([]string{next}, rest...), "/")}, nil
		case st.Mode&unix.S_IFMT != unix.S_IFLNK:
			at = next
			continue
		}
		if links++; links > mostLinks {
			return owner{}, &fs.PathError{Op: "lstat", Path: path, Err: unix.ELOOP}
		}
		to, err := os.Readlink(next)
		if err != nil {
			return owner{}, err
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return owner{}, nil
}

// mapped reports whether a user id is one of this user namespace
// (user_namespaces(7)).
func mapped(uid int) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		var first, outside, count int
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil && uid >= first && uid-first < count {
			return true
		}
	}
	return false
}

// groupOf returns the group of a user; where the machine does not know the user, a
// file's, unless that is root's.
func groupOf(uid, gid int) int {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		if n, err := strconv.Atoi(u.Gid); err == nil {
			return n
		}
	}
	if gid == 0 {
		return uid
	}
	return gid
}

// errDrop is the error of a process that is root's without the right to give its
// rights up.
func (o owner) errDrop(path string, err error) error {
	return fmt.Errorf("%s is in the hands of user %d, and root does not use it with rights of its own, but cannot take that user's: %w; run the command as that user, or use a path of root's alone", path, o.uid, err)
}

// explain adds to an error for lack of rights whose rights there were.
func (o owner) explain(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w; %s is in the hands of user %d, so root uses it with that user's rights: give that user what is missing (chown %[3]d), or use a path of root's alone", err, path, o.uid)
}

// Do calls f with the rights of the owner of a path to files. They are those of f's
// goroutine only: f must not leave file work to others.
func Do(path string, f func() error) error {
	return do(path, func(owner) error { return f() })
}

func do(path string, f func(owner) error) error {
	if os.Geteuid() != 0 {
		return f(owner{uid: os.Geteuid()})
	}
	o, err := ownerOf(path)
	if err != nil {
		return err
	}
	if o.uid == 0 {
		return f(o)
	}
	return ownthread.Do(func() error {
		if err := o.take(); err != nil {
			return o.errDrop(path, err)
		}
		return o.explain(path, f(o))
	})
}

// take has this thread use files as the owner, without root's groups and
// capabilities for files (setfsuid(2)).
func (o owner) take() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 { // package syscall's is for all threads
		return os.NewSyscallError("setgroups", errno)
	}
	for _, set := range []struct {
		name string
		set  func(int) (int, error)
		id   int
	}{{"setfsgid", unix.SetfsgidRetGid, o.gid}, {"setfsuid", unix.SetfsuidRetUid, o.uid}} {
		_, err := set.set(set.id)
		if now, _ := set.set(-1); err != nil || now != set.id { // it reports no failure
			return os.NewSyscallError(set.name, errors.Join(err, unix.EPERM))
		}
	}
	return nil
}

// Become has the whole process use the files of a directory as the directory's
// owner until back is called, for work of many goroutines. in is the directory
// under a name that the owners of directories above it cannot lead elsewhere.
func Become(dir string) (in string, back func() error, err error) {
	stay := func() error { return nil }
	if os.Geteuid() != 0 {
		return dir, stay, nil
	}
	above, err := ownerOf(dir)
	if err != nil {
		return "", nil, err
	}
	f, err := OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", nil, errors.Join(err, f.Close())
	}
	if in = dir; int(st.Uid) != above.uid {
		in, stay = fmt.Sprintf("/proc/self/fd/%d", f.Fd()), f.Close
	} else if err := f.Close(); err != nil {
		return "", nil, err
	}
	if st.Uid == 0 || !mapped(int(st.Uid)) {
		return in, stay, nil
	}
	o := owner{uid: int(st.Uid), gid: groupOf(int(st.Uid), int(st.Gid))}
	groups, err := syscall.Getgroups()
	if err != nil {
		return "", nil, err
	}
	back = func() error {
		return errors.Join(syscall.Setresuid(-1, 0, -1), syscall.Setresgid(-1, 0, -1), syscall.Setgroups(groups), stay())
	}
	// The real user stays root, so that the owner cannot send the process signals.
	err = syscall.Setgroups(nil)
	if err == nil {
		err = syscall.Setresgid(-1, o.gid, -1)
	}
	if err == nil {
		err = syscall.Setresuid(-1, o.uid, -1)
	}
	if err != nil {
		return "", nil, errors.Join(o.errDrop(dir, err), back())
	}
	return in, back, nil
}

// Check refuses a path that others than root decide about, for work that only
// root's rights can do.
func Check(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	o, err := ownerOf(path)
	if err == nil && o.uid != 0 {
		err = fmt.Errorf("%s is in the hands of user %d, who could lead root's work there elsewhere; choose a path of root's alone", path, o.uid)
	}
	return err
}
