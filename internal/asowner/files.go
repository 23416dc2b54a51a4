package asowner

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/wholefile"
)

// MostOctets is the largest file that is read whole.
const MostOctets = 64 << 20

// OpenFile is os.OpenFile. Root makes a file where all users may put something only
// if nobody has done so meanwhile. On a path that another user controls it opens
// nothing but regular files and, with O_DIRECTORY, directories, and waits for nobody.
func OpenFile(path string, flag int, mode fs.FileMode) (f *os.File, err error) {
	err = do(path, func(o owner) error {
		if o.shared && flag&os.O_CREATE != 0 {
			flag |= os.O_EXCL
		}
		if o.path != "" {
			f, err = o.open(path, flag, mode)
		} else {
			f, err = os.OpenFile(path, flag, mode)
		}
		return err
	})
	return f, err
}

// open is os.OpenFile for root on a path of this owner.
func (o owner) open(path string, flag int, mode fs.FileMode) (*os.File, error) {
	fail := func(err error) (*os.File, error) { return nil, &fs.PathError{Op: "open", Path: path, Err: err} }
	how := unix.OpenHow{Flags: uint64(flag) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if flag&unix.O_PATH == 0 {
		how.Flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	if flag&os.O_CREATE != 0 {
		how.Mode = uint64(mode.Perm())
	}
	fd, err := openAt(o.path, &how)
	if err != nil {
		return fail(err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && flag&unix.O_DIRECTORY == 0 {
		err = regular(st.Mode)
	}
	if err == nil && how.Flags&unix.O_NONBLOCK != 0 {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		unix.Close(fd)
		return fail(err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// regular returns an error for what is no regular file.
func regular(mode uint32) error {
	kind, ok := map[uint32]string{
		unix.S_IFDIR: "a directory", unix.S_IFIFO: "a FIFO", unix.S_IFSOCK: "a socket", unix.S_IFCHR: "a device", unix.S_IFBLK: "a device",
	}[mode&unix.S_IFMT]
	switch {
	case mode&unix.S_IFMT == unix.S_IFDIR:
		return unix.EISDIR
	case ok:
		return fmt.Errorf("it is %s, and root uses only regular files where another user decides what is there", kind)
	}
	return nil
}

// Open is os.Open.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// Create is os.Create.
func Create(path string) (*os.File, error) {
	return OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// ReadFile is os.ReadFile for a file of at most MostOctets.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadFrom(f, path)
}

// ReadFrom is ReadFile for an open file; errors call it name.
func ReadFrom(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MostOctets+1))
	if err == nil && len(text) > MostOctets {
		return nil, fmt.Errorf("%s: more than %d octets; give a smaller file", name, MostOctets)
	}
	return text, err
}

// LoadKeyPair is tls.LoadX509KeyPair.
func LoadKeyPair(certificate, key string) (tls.Certificate, error) {
	cert, err := ReadFile(certificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := ReadFile(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, private)
}

// WriteFile is os.WriteFile.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// WriteWhole is wholefile.Write.
func WriteWhole(path string, text []byte, mode fs.FileMode) error {
	return Do(filepath.Dir(path), func() error { return wholefile.Write(path, text, mode) })
}

// Draft is a wholefile.Draft.
type Draft struct{ *wholefile.Draft }

// NewDraft is wholefile.NewDraft.
func NewDraft(path string, mode fs.FileMode) (d Draft, err error) {
	err = Do(filepath.Dir(path), func() error { d.Draft, err = wholefile.NewDraft(path, mode); return err })
	return d, err
}

// Commit stores the draft as the file.
func (d Draft) Commit() error { return Do(filepath.Dir(d.Path), d.Draft.Commit) }

// Discard removes a draft that was not committed.
func (d Draft) Discard() {
	_ = Do(filepath.Dir(d.Path), func() error { d.Draft.Discard(); return nil })
}

// MkdirAll is os.MkdirAll.
func MkdirAll(path string, mode fs.FileMode) error {
	return Do(path, func() error { return os.MkdirAll(path, mode) })
}

// Remove is os.Remove.
func Remove(path string) error { return Do(path, func() error { return os.Remove(path) }) }

// RemoveAll is os.RemoveAll.
func RemoveAll(path string) error {
	return Do(path, func() error { return os.RemoveAll(path) })
}
