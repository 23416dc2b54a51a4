package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/auditlog"
)

// audit is the audit log: it records the calls through this gateway, and reads
// the records of all processes of this machine.
type audit struct{ auditlog.Log }

// record is one line.
type record = auditlog.Record

const (
	auditDefault = 100    // records in an answer by default
	auditMost    = 10_000 // at most
)

// list returns the latest records of all processes whose files are here.
func (a *audit) list(_ context.Context, req *api.ListAuditRequest) (*api.ListAuditResponse, error) {
	if a.Dir == "" {
		return nil, api.Errorf(codes.FailedPrecondition, "the controller keeps no audit log here: it was started without a data directory")
	}
	limit := cmp.Or(int(req.Limit), auditDefault)
	if limit > auditMost {
		return nil, api.Errorf(codes.InvalidArgument, "limit: %d: want up to %d; the files are in %s", limit, auditMost, a.Dir)
	}
	since, err := timeIn("since", req.Since)
	if err != nil {
		return nil, err
	}
	before, err := timeIn("before", req.Before)
	if err != nil {
		return nil, err
	}
	wanted := func(r *record) bool {
		return (req.Who == "" || r.Who == req.Who) && !r.Time.Before(since) && (before.IsZero() || r.Time.Before(before)) &&
			(req.Method == "" || r.Method == req.Method || strings.HasPrefix(r.Method, req.Method+"."))
	}
	paths, err := filepath.Glob(filepath.Join(a.Dir, "*"+auditlog.Suffix))
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
			break // all in it is older than what we have
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

// timeIn reads the time in a field of a request; zero if it is empty.
func timeIn(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, api.Errorf(codes.InvalidArgument, "%s: %q: want a time as of RFC 3339, such as 2030-01-31T00:00:00Z", field, text)
	}
	return t, nil
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// readAudit returns the wanted records of a file. It skips malformed lines: a
// crash may have cut a line off.
func readAudit(path string, wanted func(*record) bool) ([]*record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it has just been rotated
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

// outcome records how a call has ended.
func outcome(r *record, err error, took time.Duration) {
	r.Result, r.TookUS = status.Code(err).String(), took.Microseconds()
	if err != nil {
		r.Error = clip(scrub(status.Convert(err).Message()), 500)
	}
}
