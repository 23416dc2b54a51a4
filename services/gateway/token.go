package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/asowner"
)

// tokens holds the token of the configuration. The zero value has none.
type tokens struct {
	fixed string
	file  string

	mu    sync.Mutex // guards what follows
	value string     // of the file
	mtime time.Time  // of the file as it was last read
	size  int64
}

// newTokens returns the tokens of a configuration; the error describes what is
// wrong with the file.
func newTokens(c *Config) (*tokens, error) {
	t := &tokens{fixed: c.Token, file: c.TokenFile}
	_, err := t.current()
	return t, err
}

// asked reports whether there is a token: then clients must present one.
func (t *tokens) asked() bool { return t.fixed != "" || t.file != "" }

// right reports whether the SHA-256 of what a client has presented is that of the
// token, in constant time.
func (t *tokens) right(presented [sha256.Size]byte) bool {
	want, err := t.current()
	if err != nil || want == "" {
		return false
	}
	sum := sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(presented[:], sum[:]) == 1
}

// current returns the token. It re-reads a changed file, so that the old token
// ends with it.
func (t *tokens) current() (string, error) {
	if t.file == "" {
		return t.fixed, nil
	}
	info, err := os.Stat(t.file)
	if err != nil {
		return "", fmt.Errorf("gateway: token_file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("gateway: token_file %s: its mode is %04o, so others on this machine can read it; run chmod 600 %s", t.file, info.Mode().Perm(), t.file)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value != "" && info.ModTime().Equal(t.mtime) && info.Size() == t.size {
		return t.value, nil
	}
	text, err := asowner.ReadFile(t.file)
	if err != nil {
		return "", fmt.Errorf("gateway: token_file: %w", err)
	}
	value := strings.TrimSpace(string(text))
	if len(value) < minToken || strings.ContainsAny(value, " \t\r\n") {
		return "", fmt.Errorf("gateway: token_file %s: want one line of at least %d characters, such as that of `openssl rand -hex 16`", t.file, minToken)
	}
	t.value, t.mtime, t.size = value, info.ModTime(), info.Size()
	return value, nil
}
