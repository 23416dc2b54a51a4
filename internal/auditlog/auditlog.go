// Package auditlog records what clients change: one JSON object per line, in
// files that only their owner can read. The services that accept changes import
// it; it imports the standard library only.
package auditlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Suffix ends the names of the files: NAME.jsonl, and NAME.1.jsonl, NAME.2.jsonl
// and so on, which are older.
const Suffix = ".jsonl"

// refusedPart is in the names of files with what was refused: NAME.refused.jsonl.
const refusedPart = ".refused"

// Log writes lines to a file. It rotates a full file and removes the oldest
// ones. What was refused for its caller's role has files of its own, so that
// nobody without rights can fill those of the changes. Set its fields before
// first use; its methods may be called from any goroutine.
type Log struct {
	Dir    string      // empty: nothing is written
	Name   string      // of the file; other writers use other names
	Size   int64       // of a file, bytes
	Files  int         // number of files kept, of changes and of refusals each
	Failed func(error) // called for a line that was not written

	changes, refused series
}

// series is a file and the older ones.
type series struct {
	mu      sync.Mutex // guards what follows
	file    *os.File
	written int64
}

// Record is one line.
type Record struct {
	Time    time.Time       `json:"time"`
	Who     string          `json:"who"`
	Role    string          `json:"role"`
	From    string          `json:"from"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
	Result  string          `json:"result"`
	Error   string          `json:"error,omitempty"`
	TookUS  int64           `json:"took_us"`
}

// Open makes the directory and the file of changes.
func (l *Log) Open() error {
	if l.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.changes.mu.Lock()
	defer l.changes.mu.Unlock()
	return l.changes.reopen(l.path(&l.changes, 0))
}

// path returns the path of a file of a series; 0 is the current one.
func (l *Log) path(s *series, n int) string {
	name := l.Name
	if s == &l.refused {
		name += refusedPart
	}
	if n > 0 {
		name += fmt.Sprintf(".%d", n)
	}
	return filepath.Join(l.Dir, name+Suffix)
}

// reopen opens the current file; mu is held.
func (s *series) reopen(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("audit log: %w", err), f.Close())
	}
	s.file, s.written = f, info.Size()
	last := make([]byte, 1)
	if s.written > 0 { // end a line that a crash cut off
		if _, err := f.ReadAt(last, s.written-1); err == nil && last[0] != '\n' {
			if n, err := f.Write([]byte("\n")); err == nil {
				s.written += int64(n)
			}
		}
	}
	return nil
}

// rotate renames the file of a series and begins another; its mu is held.
func (l *Log) rotate(s *series) error {
	err := s.file.Close()
	s.file = nil
	for n := l.Files - 1; n > 0; n-- {
		if e := os.Rename(l.path(s, n-1), l.path(s, n)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if l.Files == 1 {
		err = errors.Join(err, os.Remove(l.path(s, 0)))
	}
	return errors.Join(err, s.reopen(l.path(s, 0)))
}

// Add writes a line. If that fails, it calls Failed, because the change is
// already made.
func (l *Log) Add(r *Record) {
	if l.Dir == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		l.Failed(err)
		return
	}
	line = append(line, '\n')
	s := &l.changes
	if r.Result == "PermissionDenied" {
		s = &l.refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		err = s.reopen(l.path(s, 0))
	}
	if err == nil && s.written > 0 && s.written+int64(len(line)) > l.Size {
		err = l.rotate(s)
	}
	if err == nil {
		var n int
		n, err = s.file.Write(line)
		s.written += int64(n)
	}
	if err != nil {
		l.Failed(err)
	}
}

// Close closes the files.
func (l *Log) Close() error { return errors.Join(l.changes.close(), l.refused.close()) }

func (s *series) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
