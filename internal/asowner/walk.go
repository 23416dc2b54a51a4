package asowner

import (
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openAt is openat2 without magic links, on every Linux: before 5.6, which has no openat2,
// and where a filter of system calls does not know it, it goes along the path by itself.
func openAt(path string, how *unix.OpenHow) (int, error) {
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOSYS):
			return walk(path, int(how.Flags), uint32(how.Mode))
		}
		return fd, err
	}
}

// walk opens an absolute path name by name, and follows symbolic links itself, but those of
// /proc, which lead to what processes have open.
func walk(path string, flag int, mode uint32) (int, error) {
	const pass = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := open(unix.AT_FDCWD, "/", pass, 0)
	if err != nil {
		return -1, err
	}
	defer func() { unix.Close(at) }()
	rest, links, slash := path, 0, false // slash: one ends the path, so that it is of a directory
	for {
		name, more, cut := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		last := strings.Trim(more, "/") == ""
		if slash = slash || last && cut; name == "" {
			name = "."
		}
		to, err := link(at, name)
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // no link, or nothing yet
		case err != nil:
			return -1, err
		case last && !slash && (flag&unix.O_NOFOLLOW != 0 || flag&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL):
		default:
			if links++; links > mostLinks {
				return -1, unix.ELOOP
			}
			if rest = to; !last {
				rest += "/" + more
			}
			if filepath.IsAbs(to) {
				root, err := open(unix.AT_FDCWD, "/", pass, 0)
				if err != nil {
					return -1, err
				}
				unix.Close(at)
				at = root
			}
			continue
		}
		if last {
			if slash && flag&unix.O_CREAT != 0 {
				return -1, unix.EISDIR
			}
			if slash {
				flag |= unix.O_DIRECTORY
			}
			fd, err := open(at, name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
			if errors.Is(err, unix.ELOOP) && flag&unix.O_NOFOLLOW == 0 {
				if links++; links <= mostLinks {
					continue // it has become a link meanwhile
				}
			}
			return fd, err
		}
		next, err := open(at, name, pass|unix.O_DIRECTORY, 0)
		if err != nil {
			return -1, err
		}
		unix.Close(at)
		at, rest = next, more
	}
}

// link returns where a symbolic link leads; EINVAL if it is none, ELOOP if it is one of /proc.
func link(at int, name string) (string, error) {
	fd, err := open(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", unix.EINVAL
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return "", err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		return "", unix.ELOOP
	}
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", to)
	if err != nil {
		return "", err
	}
	return string(to[:n]), nil
}

// open is openat, again if a signal comes.
func open(at int, name string, flag int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flag, mode)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
