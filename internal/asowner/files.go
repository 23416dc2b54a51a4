package asowner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weft-sdn/weft/internal/wholefile"
)

// OpenFile is os.OpenFile. Root makes a file where all users may put something only
// if nobody has done so meanwhile.
func OpenFile(path string, flag int, mode fs.FileMode) (f *os.File, err error) {
	err = do(path, func(o owner) error {
		if o.shared && flag&os.O_CREATE != 0 {
			flag |= os.O_EXCL
		}
		f, err = os.OpenFile(path, flag, mode)
		return err
	})
	return f, err
}

// Open is os.Open.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// Create is os.Create.
func Create(path string) (*os.File, error) {
	return OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// ReadFile is os.ReadFile.
func ReadFile(path string) (text []byte, err error) {
	err = Do(path, func() error { text, err = os.ReadFile(path); return err })
	return text, err
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

// ReplaceFile makes a file of what write writes: all of it is there, or what was.
func ReplaceFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	d, err := NewDraft(path, mode)
	if err != nil {
		return err
	}
	defer d.Discard()
	if err := write(d); err != nil {
		return err
	}
	return d.Commit()
}

// Draft is a file that becomes another once it is whole.
type Draft struct {
	*os.File
	path string
}

// NewDraft makes a draft beside the file that it is to become.
func NewDraft(path string, mode fs.FileMode) (*Draft, error) {
	d := &Draft{path: path}
	return d, Do(filepath.Dir(path), func() (err error) {
		if d.File, err = os.CreateTemp(filepath.Dir(path), ".new-*"); err == nil { // 0600
			err = d.Chmod(mode)
		}
		return err
	})
}

// Commit stores the draft as the file.
func (d *Draft) Commit() error {
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return err
	}
	return Do(filepath.Dir(d.path), func() error { return os.Rename(d.Name(), d.path) })
}

// Discard removes a draft that was not committed.
func (d *Draft) Discard() {
	_ = d.Close()
	_ = Remove(d.Name())
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
