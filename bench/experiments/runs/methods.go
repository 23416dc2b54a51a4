package runs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/internal/machineservice"
)

// Service returns what answers the methods at a socket.
func (s *Server) Service(socket, group string) machineservice.Service {
	return machineservice.Service{
		Socket: socket, Group: group, Log: s.Log,
		API: &api.Experiments_ServiceDesc, Server: s,
		Streams: map[machineservice.Route]machineservice.StreamHandler{
			{Verb: http.MethodGet, Path: "/v1/experiments/runs/{run}/plots/{plot}"}:   s.servePlot,
			{Verb: http.MethodGet, Path: "/v1/experiments/runs/{run}/tables/{table}"}: s.serveTable,
		},
	}
}

// ListExperiments lists the experiments by paper.
func (s *Server) ListExperiments(context.Context, *api.ListExperimentsRequest) (*api.ListExperimentsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &api.ListExperimentsResponse{MostWaiting: mostWaiting, MostKept: mostKept}
	for _, e := range s.All {
		one := &api.Experiment{
			Name: e.Name, Paper: e.Paper, Title: e.Title, Figure: e.Figure, Claim: plain(e.Claim), Method: plain(e.Method), Deviation: plain(e.Deviation),
			Rounds: uint32(e.Runs), QuickRounds: uint32(e.QuickRuns),
		}
		for _, r := range s.runs { // the last counts
			switch {
			case r.Experiment != e.Name || r.State != done:
			case r.Quick && r.Rounds == e.QuickRuns:
				one.QuickSeconds = r.Seconds
			case !r.Quick && r.Rounds == e.Runs:
				one.Seconds = r.Seconds
			}
		}
		out.Experiments = append(out.Experiments, one)
	}
	return out, nil
}

func plain(text string) string { return strings.ReplaceAll(text, "\n", " ") }

// RunExperiment has an experiment run as soon as those before it have ended.
func (s *Server) RunExperiment(ctx context.Context, r *api.RunExperimentRequest) (*api.ExperimentRun, error) {
	found, err := experiments.Find(s.All, []string{r.Name})
	if err != nil {
		return nil, api.Errorf(codes.NotFound, "%w", err)
	}
	if r.Rounds > mostRounds {
		return nil, api.Errorf(codes.InvalidArgument, "rounds: %d; at most %d, or 0 for those of the experiment", r.Rounds, mostRounds)
	}
	if r.LimitMinutes > mostMinutes {
		return nil, api.Errorf(codes.InvalidArgument, "limit_minutes: %d; at most %d, or 0 for %d", r.LimitMinutes, mostMinutes, usualMinutes)
	}
	e := found[0]
	rec := record{Experiment: e.Name, Quick: r.Quick, Rounds: int(r.Rounds), Minutes: int(r.LimitMinutes), Caller: machineservice.CallerOf(ctx).Name}
	if rec.Rounds == 0 {
		if rec.Rounds = e.Runs; r.Quick {
			rec.Rounds = e.QuickRuns
		}
	}
	if rec.Minutes == 0 {
		rec.Minutes = usualMinutes
	}
	added, err := s.add(rec)
	if err != nil {
		return nil, err
	}
	return s.shown(added), nil
}

// shown returns a run as clients see it.
func (s *Server) shown(r *run) *api.ExperimentRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.toAPI(r.dir, s.title(r.Experiment))
}

// title returns what an experiment measures; empty of one that there is not any
// more.
func (s *Server) title(name string) string {
	if found, err := experiments.Find(s.All, []string{name}); err == nil {
		return found[0].Title
	}
	return ""
}

// ListExperimentRuns lists the runs that are kept, and what the command line has
// left beside them.
func (s *Server) ListExperimentRuns(context.Context, *api.ListExperimentRunsRequest) (*api.ListExperimentRunsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &api.ListExperimentRunsResponse{}
	for _, r := range s.runs {
		out.Runs = append(out.Runs, r.toAPI(r.dir, s.title(r.Experiment)))
	}
	out.Runs = append(out.Runs, s.onCommandLine()...)
	slices.SortStableFunc(out.Runs, func(a, b *api.ExperimentRun) int {
		if a.Created != b.Created {
			return strings.Compare(b.Created, a.Created)
		}
		return numberOf(b.Run) - numberOf(a.Run)
	})
	return out, nil
}

// GetExperimentRun returns a run with the end of its log and its results.
func (s *Server) GetExperimentRun(_ context.Context, r *api.GetExperimentRunRequest) (*api.ExperimentRunDetails, error) {
	run, dir, err := s.look(r.Run)
	if err != nil {
		return nil, err
	}
	out := &api.ExperimentRunDetails{Run: run}
	out.Log, _ = readLog(dir)
	sum, err := readSummary(dir, run.Experiment)
	if err != nil {
		return nil, err
	}
	if sum != nil {
		out.Results = sum.toAPI()
	}
	return out, nil
}

// look returns a run, and the folder of its results.
func (s *Server) look(name string) (*api.ExperimentRun, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.find(name); r != nil {
		return r.toAPI(r.dir, s.title(r.Experiment)), r.dir, nil
	}
	for _, r := range s.onCommandLine() {
		if r.Run == name {
			return r, s.Dir, nil
		}
	}
	return nil, "", api.Errorf(codes.NotFound, "run %q: there is none of that name; GET /v1/experiments/runs lists those that are kept", name)
}

// CancelExperimentRun ends a run, and answers when nothing of it is left.
func (s *Server) CancelExperimentRun(ctx context.Context, r *api.CancelExperimentRunRequest) (*api.ExperimentRun, error) {
	s.mu.Lock()
	run := s.find(r.Run)
	switch {
	case run == nil:
	case run.State == waiting:
		run.finish(cancelled, "")
		s.keep(run)
		close(run.gone)
	case run.State == running:
		run.cancelled = true
		if run.stop != nil {
			run.stop()
		}
	}
	s.mu.Unlock()
	if run == nil {
		run, _, err := s.look(r.Run)
		return run, err
	}
	select {
	case <-run.gone:
	case <-ctx.Done():
		return nil, api.Errorf(codes.DeadlineExceeded, "run %s cleans up yet", r.Run)
	}
	return s.shown(run), nil
}

// DeleteExperimentRun removes a run that has ended.
func (s *Server) DeleteExperimentRun(_ context.Context, r *api.DeleteExperimentRunRequest) (*api.DeleteExperimentRunResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.runs, func(run *run) bool { return run.Run == r.Run })
	switch {
	case i < 0 && slices.ContainsFunc(s.All, func(e experiments.Experiment) bool { return e.Name == r.Run }):
		return nil, api.Errorf(codes.FailedPrecondition, "run %q is of the command line: remove the folder %s", r.Run, filepath.Join(s.Dir, r.Run))
	case i < 0:
		return &api.DeleteExperimentRunResponse{}, nil
	case !s.runs[i].over():
		return nil, api.Errorf(codes.FailedPrecondition, "run %q has not ended: cancel it first", r.Run)
	}
	return &api.DeleteExperimentRunResponse{Deleted: true}, s.remove(i)
}

// servePlot answers GetExperimentPlot.
func (s *Server) servePlot(w http.ResponseWriter, _ *http.Request, fields map[string]string) {
	run, dir, err := s.look(fields["run"])
	var svg []byte
	if err == nil {
		var sum *summary
		if sum, err = readSummary(dir, run.Experiment); err == nil && sum == nil {
			err = api.Errorf(codes.NotFound, "run %s has no results", run.Run)
		}
		if err == nil {
			svg, err = sum.plot(fields["plot"])
		}
	}
	if err != nil {
		machineservice.Refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(svg) // the client is gone if it fails
}

// serveTable answers GetExperimentTable.
func (s *Server) serveTable(w http.ResponseWriter, _ *http.Request, fields map[string]string) {
	files := map[string]string{"claims": "table.csv", "samples": "data.csv"}
	run, dir, err := s.look(fields["run"])
	var f *os.File
	if err == nil {
		if file, ok := files[fields["table"]]; !ok {
			err = api.Errorf(codes.NotFound, "table %q: want claims or samples", fields["table"])
		} else if f, err = asowner.Open(filepath.Join(dir, run.Experiment, file)); errors.Is(err, fs.ErrNotExist) {
			err = api.Errorf(codes.NotFound, "run %s has no table %s yet", run.Run, fields["table"])
		}
	}
	if err != nil {
		machineservice.Refuse(w, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+run.Run+"-"+fields["table"]+`.csv"`)
	_, _ = io.Copy(w, f) // the client is gone if it fails
}
