package bus

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tokenFile is the file in the data directory with the secret of the clients of
// the embedded server.
const tokenFile = "token"

// token returns the secret of a data directory; it makes a missing one. The
// caller holds the directory's lock.
func token(dir string) (string, error) {
	name := filepath.Join(dir, tokenFile)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newToken(name)
	case err != nil:
		return "", fmt.Errorf("token of the store: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("token of the store: %s is a file that others may read (mode %v); remove it, and a new one is made", name, info.Mode())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("token of the store: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < len(rand.Text()) {
		return "", fmt.Errorf("token of the store: %s holds only %d characters; remove it, and a new one is made", name, len(secret))
	}
	return secret, nil
}

// newToken writes a new secret, atomically.
func newToken(name string) (string, error) {
	secret := rand.Text()
	draft := name + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("token of the store: %w", err)
	}
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("token of the store: %w", err)
	}
	_, err = fmt.Fprintln(f, secret)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("token of the store: %w", err)
	}
	if err := os.Rename(draft, name); err != nil {
		return "", fmt.Errorf("token of the store: %w", err)
	}
	return secret, nil
}
