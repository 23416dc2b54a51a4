package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/internal/testwait"
)

// fakes are experiments that take no time, some, and that fail.
func fakes() []experiments.Experiment {
	of := func(name string, sample func() error) experiments.Experiment {
		return experiments.Experiment{
			Name: name, Title: "the title of " + name, Paper: "a paper", Figure: "Fig. 1", Claim: "it\nis so", Runs: 30, QuickRuns: 6,
			Columns: []string{"ms"},
			Cases: func(experiments.Parameters) []experiments.Case {
				return []experiments.Case{{Name: "one", Open: func(context.Context, *experiments.Context) (experiments.Subject, error) {
					return experiments.Once(func(ctx context.Context, round int) ([][]string, error) {
						return [][]string{{fmt.Sprint(10 + round)}}, errors.Join(sample(), ctx.Err())
					}), nil
				}}}
			},
			Sum: func(c *experiments.Context) error {
				m := c.Median("ms", "one", nil)
				c.Compare(experiments.Claim{What: "latency", Paper: "12 ms", Value: 12, Unit: "ms"}.Of(m).AtMost(100))
				c.Draw(figure.Figure{Name: "Fig. 1", Title: "latency", Panels: []figure.Panel{{
					X: figure.Axis{Label: "case", Names: []string{"one"}}, Y: figure.Axis{Label: "ms"},
					Series: []figure.Series{{Name: "weft", Kind: figure.Bars, Colour: 1, Points: []figure.Point{figure.At(0, m, "one")}}},
				}}})
				return nil
			},
		}
	}
	return []experiments.Experiment{
		of("fast", func() error { return nil }),
		of("slow", func() error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}),
		of("broken", func() error { return errors.New("out of order") }),
	}
}

// TestMain is weft experiment run, too, of the fake experiments; the slow one
// leaves a process behind.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "fake" {
		os.Exit(m.Run())
	}
	f := flag.NewFlagSet("fake", flag.ExitOnError)
	dir, runs, quick := f.String("dir", "", ""), f.Int("runs", 0, ""), f.Bool("quick", false, "")
	f.Duration("limit", 0, "")
	_ = f.Parse(os.Args[3:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	list, err := experiments.Find(fakes(), os.Args[2:3])
	if err == nil && os.Args[2] == "slow" {
		err = exec.Command("sleep", "600").Start()
	}
	if err == nil {
		_, err = experiments.Run(ctx, list[0], experiments.Parameters{Runs: *runs, Quick: *quick}, *dir, 0, experiments.NewProgress(os.Stderr, false))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "weft: %v\n", err)
		os.Exit(1)
	}
}

// serve opens a server and has it work until the function that it returns is
// called.
func serve(t *testing.T, dir string) (*Server, func()) {
	t.Helper()
	s, err := Open(Options{Dir: dir, All: fakes(), Program: []string{os.Args[0], "fake"}, Patience: 10 * time.Second, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var once bool
	end := func() {
		if once {
			return
		}
		once = true
		stop()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	return s, end
}

func begin(t *testing.T, s *Server, name string, quick bool) string {
	t.Helper()
	r, err := s.RunExperiment(t.Context(), &api.RunExperimentRequest{Name: name, Quick: quick})
	if err != nil {
		t.Fatal(err)
	}
	return r.Run
}

// until waits until a run is as wanted.
func until(t *testing.T, s *Server, run string, want func(*api.ExperimentRun) bool) *api.ExperimentRunDetails {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		d, err := s.GetExperimentRun(t.Context(), &api.GetExperimentRunRequest{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		if want(d.Run) {
			return d
		}
	}
	d, _ := s.GetExperimentRun(t.Context(), &api.GetExperimentRunRequest{Run: run})
	t.Fatalf("run %s stays so: %v", run, d)
	return nil
}

func over(r *api.ExperimentRun) bool { return r.Ended != "" }

// A run's results are those of its experiment, over HTTP, and outlive the server.
func TestResults(t *testing.T) {
	dir := t.TempDir()
	s, end := serve(t, dir)
	run := begin(t, s, "fast", true)
	d := until(t, s, run, over)
	if d.Run.State != "done" || d.Run.Done != 6 || d.Run.Total != 6 || d.Run.Seconds <= 0 || len(d.Log) == 0 {
		t.Errorf("run: %v", d)
	}
	broken := until(t, s, begin(t, s, "broken", true), over)
	if broken.Run.State != "failed" || !strings.Contains(broken.Run.Error, "out of order") || broken.Results != nil {
		t.Errorf("broken: %v", broken)
	}
	end()
	s, _ = serve(t, dir)
	d = until(t, s, run, over)
	r := d.Results
	if r == nil || r.Samples != 6 || len(r.Claims) != 1 || len(r.Figures) != 1 || r.Paper != "a paper" {
		t.Fatalf("results: %v", r)
	}
	if c := r.Claims[0]; c.GetOurs() != 13.5 || c.GetPaperValue() != 12 || c.GetAtMost() != 100 || len(c.Ci95) != 2 || c.Count != 6 || c.Reproduced != "-" || c.Met == "" || c.Verdict != c.Met || c.Figure != "Fig. 1" {
		t.Errorf("claim: %v", c)
	}
	if p := r.Figures[0].Panels[0].Series[0].Points[0]; p.GetY() != 13.5 || len(p.Ci95) != 2 {
		t.Errorf("point: %v", p)
	}
	list, err := s.ListExperiments(t.Context(), nil)
	if err != nil || len(list.Experiments) != 3 || list.Experiments[0].QuickSeconds <= 0 || list.Experiments[0].Seconds != 0 {
		t.Errorf("experiments: %v %v", list, err)
	}

	handler, err := s.Service("", "").Handler()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, kind, text string
		status           int
	}{
		{"/v1/experiments", "application/json", `"quick_rounds":6`, 200},
		{"/v1/experiments/runs", "application/json", `"run":"` + run + `"`, 200},
		{"/v1/experiments/runs/" + run, "application/json", `"verdict"`, 200},
		{"/v1/experiments/runs/" + run + "/plots/1", "image/svg+xml", "<svg", 200},
		{"/v1/experiments/runs/" + run + "/plots/all", "image/svg+xml", "<svg", 200},
		{"/v1/experiments/runs/" + run + "/plots/2", "application/json", "from 1 to 1", 404},
		{"/v1/experiments/runs/" + run + "/tables/claims", "text/csv; charset=utf-8", "latency", 200},
		{"/v1/experiments/runs/" + run + "/tables/samples", "text/csv; charset=utf-8", "one,1,11", 200},
		{"/v1/experiments/runs/" + run + "/tables/run.json", "application/json", "claims or samples", 404},
		{"/v1/experiments/runs/none", "application/json", "none of that name", 404},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, test.path, nil))
		if w.Code != test.status || w.Header().Get("Content-Type") != test.kind || !strings.Contains(strings.ReplaceAll(w.Body.String(), `": "`, `":"`), test.text) {
			t.Errorf("%s: %d %s %s; want %d %s with %q", test.path, w.Code, w.Header().Get("Content-Type"), w.Body, test.status, test.kind, test.text)
		}
	}
	if gone, err := s.DeleteExperimentRun(t.Context(), &api.DeleteExperimentRunRequest{Run: run}); err != nil || !gone.Deleted {
		t.Errorf("delete: %v %v", gone, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs", run)); !os.IsNotExist(err) {
		t.Errorf("its folder is there yet: %v", err)
	}
}

// One run works at a time; cancelling ends it with all that it has started, and
// the next begins.
func TestCancel(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	first, second, third := begin(t, s, "slow", false), begin(t, s, "slow", false), begin(t, s, "fast", true)
	until(t, s, first, func(r *api.ExperimentRun) bool { return r.Done > 0 && r.Total == 30 })
	s.mu.Lock()
	mark := s.find(first).Mark
	s.mu.Unlock()
	if len(marked(mark)) < 2 {
		t.Errorf("processes %v; want the experiment and what it has started", marked(mark))
	}
	for _, run := range []string{second, first} {
		r, err := s.CancelExperimentRun(t.Context(), &api.CancelExperimentRunRequest{Run: run})
		if err != nil || r.State != "cancelled" {
			t.Errorf("cancel %s: %v %v", run, r, err)
		}
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if d := until(t, s, third, over); d.Run.State != "done" {
		t.Errorf("third: %v", d.Run)
	}
	if r, err := s.CancelExperimentRun(t.Context(), &api.CancelExperimentRunRequest{Run: third}); err != nil || r.State != "done" {
		t.Errorf("cancelling what is done: %v %v", r, err)
	}
}

// A run goes on with its samples when the server starts again, whether it was
// ended or has left the record of a run at work.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	s, end := serve(t, dir)
	run := begin(t, s, "slow", false)
	until(t, s, run, func(r *api.ExperimentRun) bool { return r.Done > 0 })
	if other, err := Open(s.Options); err == nil {
		other.Close()
		t.Error("two servers have one data folder")
	}
	end()
	file := filepath.Join(dir, "runs", run, recordFile)
	rec := record{}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &rec)
	}
	if err != nil || rec.State != interrupted || len(marked(rec.Mark)) > 0 {
		t.Fatalf("record: %v %v, processes %v", rec, err, marked(rec.Mark))
	}
	rec.State = running // as a server leaves it that is killed
	if err := rec.save(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	s, _ = serve(t, dir)
	d := until(t, s, run, over)
	if d.Run.State != "done" || d.Results.GetSamples() != 30 || !strings.Contains(d.Log[0], "are there already") {
		t.Errorf("run: %v, log %q", d.Run, d.Log)
	}
}

// Queue and requests are bounded.
func TestBounds(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), All: fakes(), Log: slog.New(slog.DiscardHandler)}) // works nothing off
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range mostWaiting {
		begin(t, s, "fast", true)
	}
	for _, test := range []struct {
		request *api.RunExperimentRequest
		kind    codes.Code
	}{
		{&api.RunExperimentRequest{Name: "fast"}, codes.ResourceExhausted},
		{&api.RunExperimentRequest{Name: "none"}, codes.NotFound},
		{&api.RunExperimentRequest{Name: "fast", Rounds: 101}, codes.InvalidArgument},
		{&api.RunExperimentRequest{Name: "fast", LimitMinutes: 1441}, codes.InvalidArgument},
	} {
		if _, err := s.RunExperiment(t.Context(), test.request); api.KindOf(err) != test.kind {
			t.Errorf("%v: %v; want %v", test.request, err, test.kind)
		}
	}
	runs, err := s.ListExperimentRuns(t.Context(), nil)
	if err != nil || len(runs.Runs) != mostWaiting || runs.Runs[0].Run != "fast.16" {
		t.Fatalf("runs: %v %v", runs, err)
	}
	if _, err := s.DeleteExperimentRun(t.Context(), &api.DeleteExperimentRunRequest{Run: "fast.1"}); api.KindOf(err) != codes.FailedPrecondition {
		t.Errorf("deleting what waits: %v", err)
	}
	for i := range mostKept + 5 { // those that have ended go, the oldest first
		name := fmt.Sprintf("fast.%d", i+1)
		if _, err := s.CancelExperimentRun(t.Context(), &api.CancelExperimentRunRequest{Run: name}); err != nil {
			t.Fatal(err)
		}
		begin(t, s, "fast", true)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) != mostKept || s.find("fast.1") != nil {
		t.Errorf("%d runs are kept; want %d", len(s.runs), mostKept)
	}
}

// What weft experiment run has left in the data folder is shown, too.
func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	if _, err := experiments.Run(t.Context(), fakes()[0], experiments.Parameters{Runs: 3}, dir, 0, experiments.NewProgress(io.Discard, false)); err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, dir)
	d := until(t, s, "fast", over)
	if d.Run.Rounds != 3 || d.Run.State != "done" || d.Results.GetSamples() != 3 {
		t.Errorf("run: %v", d)
	}
	if _, err := s.DeleteExperimentRun(t.Context(), &api.DeleteExperimentRunRequest{Run: "fast"}); api.KindOf(err) != codes.FailedPrecondition {
		t.Errorf("delete: %v", err)
	}
}

// TestNoRoom: where a record cannot be written, a new run is refused, and one that
// was cancelled stays so once there is room, also after a restart.
func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	s, end := serve(t, dir)
	run := begin(t, s, "slow", false)
	at, away := filepath.Join(dir, "runs", run), filepath.Join(dir, run)
	testwait.Until(t, "the run's start on the disk, and a sample: its program makes no folder any more", func() bool {
		on, err := readRecord(at)
		data, _ := os.ReadFile(filepath.Join(at, "slow", "data.csv"))
		return err == nil && on.State == running && bytes.Count(data, []byte("\n")) > 1
	})
	if err := os.Rename(at, away); err != nil { // nothing can be written there
		t.Fatal(err)
	}
	r, err := s.CancelExperimentRun(t.Context(), &api.CancelExperimentRunRequest{Run: run})
	if err != nil || r.State != cancelled {
		t.Fatal(r, err)
	}
	if on, err := readRecord(away); err != nil || on.State != running {
		t.Fatalf("on the disk: %v %v", on, err)
	}
	if err := os.Rename(away, at); err != nil {
		t.Fatal(err)
	}
	s.wake <- struct{}{} // instead of waiting
	testwait.Until(t, "the cancellation on the disk", func() bool {
		on, err := readRecord(at)
		return err == nil && on.State == cancelled
	})
	end()
	s, _ = serve(t, dir)
	if d := until(t, s, run, func(*api.ExperimentRun) bool { return true }); d.Run.State != cancelled {
		t.Errorf("after a restart: %v", d.Run)
	}
	if err := disk(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}); api.KindOf(err) != codes.ResourceExhausted {
		t.Errorf("a full disk: %v", err)
	}
}
