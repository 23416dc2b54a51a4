package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"weft/api"
)

// auditSuffix ends the names of the files of the audit log: PROCESS.jsonl, and
// PROCESS.1.jsonl, PROCESS.2.jsonl and so on, which are older.
const auditSuffix = ".jsonl"

// audit writes what clients change, one JSON object per line, to a file that
// only its owner can read. When it is full it is put aside; the oldest go.
type audit struct {
	dir     string // empty: nothing is written
	process string // whose file is written; other processes write theirs
	size    int64  // of a file, octets
	files   int    // how many of a process are kept
	failed  func(error)

	mu      sync.Mutex // guards what follows
	file    *os.File
	written int64
}

// record is one line.
type record struct {
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

// open makes the directory and the file.
func (a *audit) open() error {
	if a.dir == "" {
		return nil
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fmt.Errorf("gateway: audit log: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reopen()
}

// name returns the name of a file of this process; 0 is the one that is written.
func (a *audit) name(n int) string {
	if n == 0 {
		return filepath.Join(a.dir, a.process+auditSuffix)
	}
	return filepath.Join(a.dir, fmt.Sprintf("%s.%d%s", a.process, n, auditSuffix))
}

// reopen opens the file that is written; mu is held.
func (a *audit) reopen() error {
	f, err := os.OpenFile(a.name(0), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("gateway: audit log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("gateway: audit log: %w", err), f.Close())
	}
	a.file, a.written = f, info.Size()
	last := make([]byte, 1)
	if a.written > 0 { // a line that a crash has cut off is ended
		if _, err := f.ReadAt(last, a.written-1); err == nil && last[0] != '\n' {
			if n, err := f.Write([]byte("\n")); err == nil {
				a.written += int64(n)
			}
		}
	}
	return nil
}

// rotate puts the file aside and begins another; mu is held.
func (a *audit) rotate() error {
	err := a.file.Close()
	a.file = nil
	for n := a.files - 1; n > 0; n-- {
		if e := os.Rename(a.name(n-1), a.name(n)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if a.files == 1 {
		err = errors.Join(err, os.Remove(a.name(0)))
	}
	return errors.Join(err, a.reopen())
}

// add writes a line. What cannot be written is told; the call has been made.
func (a *audit) add(r *record) {
	if a.dir == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		a.failed(err)
		return
	}
	line = append(line, '\n')
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		err = a.reopen()
	} else if a.written > 0 && a.written+int64(len(line)) > a.size {
		err = a.rotate()
	}
	if err == nil {
		var n int
		n, err = a.file.Write(line)
		a.written += int64(n)
	}
	if err != nil {
		a.failed(err)
	}
}

// close ends writing.
func (a *audit) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file = nil
	return f.Close()
}

const (
	auditDefault = 100    // records that are told
	auditMost    = 10_000 // if so many are asked for
)

// list tells of the latest records of all processes whose files are here.
func (a *audit) list(_ context.Context, req *api.ListAuditRequest) (*api.ListAuditResponse, error) {
	if a.dir == "" {
		return nil, api.Errorf(codes.FailedPrecondition, "the controller keeps no audit log here: it was started without a data directory")
	}
	limit := cmp.Or(int(req.Limit), auditDefault)
	if limit > auditMost {
		return nil, api.Errorf(codes.InvalidArgument, "limit: %d: want up to %d; the files are in %s", limit, auditMost, a.dir)
	}
	var since time.Time
	if req.Since != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, req.Since); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "since: %q: want a time as of RFC 3339, such as 2030-01-31T00:00:00Z", req.Since)
		}
	}
	wanted := func(r *record) bool {
		return (req.Who == "" || r.Who == req.Who) && !r.Time.Before(since) &&
			(req.Method == "" || r.Method == req.Method || strings.HasPrefix(r.Method, req.Method+"."))
	}
	paths, err := filepath.Glob(filepath.Join(a.dir, "*"+auditSuffix))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(paths, func(x, y string) int { return modified(y).Compare(modified(x)) })
	var found []*record
	for _, path := range paths {
		if modified(path).Before(since) {
			continue
		}
		if len(found) >= limit && modified(path).Before(found[0].Time) {
			break // all in it is older than what there is
		}
		more, err := readAudit(path, wanted)
		if err != nil {
			return nil, api.Errorf(codes.Internal, "audit log: %v", err)
		}
		found = append(found, more...)
		slices.SortStableFunc(found, func(x, y *record) int { return x.Time.Compare(y.Time) })
		found = found[max(0, len(found)-limit):]
	}
	resp := &api.ListAuditResponse{}
	for _, r := range found {
		resp.Records = append(resp.Records, &api.AuditRecord{
			Time: r.Time.UTC().Format(time.RFC3339Nano), Who: r.Who, Role: r.Role, From: r.From, Method: r.Method,
			Request: string(r.Request), Result: r.Result, Error: r.Error, TookUs: uint64(max(0, r.TookUS)),
		})
	}
	return resp, nil
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// readAudit returns the records of a file that are wanted. A line that is none
// is passed over: a crash may have cut it off.
func readAudit(path string, wanted func(*record) bool) ([]*record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it has just been put aside
	}
	if err != nil {
		return nil, err
	}
	var found []*record
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r := &record{}
		if json.Unmarshal(lines.Bytes(), r) == nil && wanted(r) {
			found = append(found, r)
		}
	}
	return found, lines.Err()
}

// outcome fills in how a call has ended.
func (r *record) outcome(err error, took time.Duration) {
	r.Result, r.TookUS = status.Code(err).String(), took.Microseconds()
	if err != nil {
		r.Error, _ = clip(scrub(status.Convert(err).Message()), 500)
	}
}
