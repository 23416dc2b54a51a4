package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/internal/asowner"
)

// The files of a run's folder, beside the results of its experiment.
const (
	recordFile = "run.json"
	logFile    = "log"
)

// record is what is kept of a run.
type record struct {
	Run        string `json:"run"`
	Experiment string `json:"experiment"`
	State      string `json:"state"`
	Quick      bool   `json:"quick"`
	Rounds     int    `json:"rounds"`
	Minutes    int    `json:"limit_minutes"`
	Caller     string `json:"caller"`
	Created    string `json:"created"`
	Started    string `json:"started"`
	Ended      string `json:"ended"`
	// Seconds is how long it has worked, until its process last ended.
	Seconds  float64 `json:"seconds"`
	Done     int     `json:"done"`
	Total    int     `json:"total"`
	Error    string  `json:"error"`
	Attempts int     `json:"attempts"`
	// Process is the number of its process, Mark what is in the environment of
	// that and all that it starts.
	Process int    `json:"process"`
	Mark    string `json:"mark"`

	began     time.Time // its process
	cancelled bool
}

// over reports whether it has ended for good.
func (r *record) over() bool { return r.State == done || r.State == failed || r.State == cancelled }

// finish ends it for good.
func (r *record) finish(state, why string) {
	r.State, r.Error, r.Ended, r.Process, r.Mark = state, why, stamp(time.Now()), 0, ""
}

// save writes it into its folder: as a whole, or not at all.
func (r *record) save(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return asowner.WriteWhole(filepath.Join(dir, recordFile), append(b, '\n'), 0o644)
}

func readRecord(dir string) (r record, err error) {
	b, err := asowner.ReadFile(filepath.Join(dir, recordFile))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	return r, err
}

// toAPI returns it as clients see it. Of one that works, it looks at what it has
// written.
func (r *record) toAPI(dir, title string) *api.ExperimentRun {
	out := &api.ExperimentRun{
		Run: r.Run, Experiment: r.Experiment, Title: title, State: r.State, Quick: r.Quick, Rounds: uint32(r.Rounds),
		LimitMinutes: uint32(r.Minutes), Caller: r.Caller, Created: r.Created, Started: r.Started, Ended: r.Ended,
		Seconds: r.Seconds, Done: uint32(r.Done), Total: uint32(r.Total), Error: r.Error,
	}
	if r.State == running {
		out.Seconds += time.Since(r.began).Seconds()
		p, at := readProgress(dir)
		out.Done, out.Total = uint32(max(p.Done, r.Done)), uint32(p.Total)
		if p.Left > 0 {
			out.SecondsLeft = max(p.Left-time.Since(at), time.Second).Seconds()
		}
	}
	_, err := os.Stat(filepath.Join(dir, r.Experiment, "summary.json"))
	out.Results = err == nil
	return out
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Bounds of what is shown of a log.
const (
	logOctets = 64 << 10
	logLines  = 200
)

// readLog returns the last lines that a run has written, and when it wrote last.
func readLog(dir string) (lines []string, at time.Time) {
	f, err := asowner.Open(filepath.Join(dir, logFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, at
	}
	if err != nil {
		return []string{err.Error()}, at
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return []string{err.Error()}, at
	}
	from := max(info.Size()-logOctets, 0)
	b, err := io.ReadAll(io.NewSectionReader(f, from, logOctets))
	if err != nil {
		return []string{err.Error()}, at
	}
	if from > 0 {
		b = b[bytes.IndexByte(b, '\n')+1:]
	}
	if text := strings.TrimRight(strings.ToValidUTF8(string(b), "?"), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	return lines[max(len(lines)-logLines, 0):], info.ModTime()
}

// readProgress returns how far a run says that it is, and when it last said
// something.
func readProgress(dir string) (p experiments.Advance, at time.Time) {
	lines, at := readLog(dir)
	for i := len(lines) - 1; i >= 0; i-- {
		if p, ok := experiments.ReadAdvance(lines[i]); ok {
			return p, at
		}
	}
	return p, at
}

// lastWords are the lines of a log that say why a run has failed.
func lastWords(dir string) string {
	lines, _ := readLog(dir)
	for i := len(lines) - 1; i >= 0; i-- {
		if text, ok := strings.CutPrefix(lines[i], "weft: "); ok {
			return text
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("it said last: %s", lines[len(lines)-1])
}
