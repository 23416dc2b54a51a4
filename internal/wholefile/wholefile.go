// Package wholefile writes files that other processes read: a reader sees
// the old text or the new one, never a part.
//
// It imports the standard library only.
package wholefile

import (
	"errors"
	"os"
)

// Write replaces a file, or makes it; what it was stays if that fails. A file has
// one writer at a time: it writes PATH.new, and renames that once it is stored.
func Write(path string, b []byte, mode os.FileMode) error {
	draft := path + ".new"
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		os.Remove(draft)
	}
	return err
}
