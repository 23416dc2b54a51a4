// Package wholefile writes files that other processes read: a reader sees
// the old text or the new one, never a part.
//
// It is for directories of this process's user. Where root writes into a directory
// that another user may control, package asowner does the same with that user's
// rights. It imports the standard library only.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file, or makes it; what it was stays if that fails.
func Write(path string, b []byte, mode os.FileMode) error {
	d, err := NewDraft(path, mode)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write(b); err != nil {
		return err
	}
	return d.Commit()
}

// Draft is a file that becomes another once it is whole.
type Draft struct {
	*os.File
	Path string // of what it is to become

	committed bool
}

// NewDraft makes a draft beside the file that it is to become, under a name that
// nothing has. Discard must be called at the end.
func NewDraft(path string, mode os.FileMode) (*Draft, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*") // 0600
	if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
		pathErr.Path = path // nobody knows the draft's
	}
	if err != nil {
		return nil, err
	}
	d := &Draft{File: f, Path: path}
	if err := f.Chmod(mode); err != nil {
		d.Discard()
		return nil, err
	}
	return d, nil
}

// Commit stores the draft as the file.
func (d *Draft) Commit() error {
	err := errors.Join(d.Sync(), d.Close())
	if err == nil {
		err = os.Rename(d.Name(), d.Path)
	}
	d.committed = err == nil
	return err
}

// Discard removes a draft that was not committed.
func (d *Draft) Discard() {
	if d.committed {
		return
	}
	_ = d.Close()
	_ = os.Remove(d.Name())
}
