package localsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

// Listen listens at a path. It replaces a socket without a listener; any other
// file there is an error and stays. Close removes the file if it is still the
// listener's. A path of the form @NAME is abstract (unix(7)).
func Listen(path string) (net.Listener, error) {
	lc := net.ListenConfig{}
	if !strings.HasPrefix(path, "@") {
		switch st, err := os.Lstat(path); {
		case err == nil && st.Mode().Type() != os.ModeSocket:
			return nil, fmt.Errorf("%s is there and is no socket; choose another path, or remove it", path)
		case err == nil:
			c, err := net.Dial("unix", path)
			if err == nil {
				_ = c.Close()
			}
			if !errors.Is(err, syscall.ECONNREFUSED) { // nobody listens
				return nil, fmt.Errorf("%s: another process listens there already", path)
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
	}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil || strings.HasPrefix(path, "@") {
		return l, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it would remove any file at the path
	own, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &file{Listener: l, path: path, own: own}, nil
}

// file is a listener at a socket in the file system.
type file struct {
	net.Listener
	path string
	own  os.FileInfo
}

// Close ends listening and removes the socket (net.Listener).
func (f *file) Close() error {
	if err := f.Listener.Close(); err != nil {
		return err // closed before
	}
	if st, err := os.Lstat(f.path); err == nil && st.Mode().Type() == os.ModeSocket && os.SameFile(st, f.own) {
		return os.Remove(f.path)
	}
	return nil
}
