package deploy

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/deploy/scaler"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/size"
)

// scalingMethod asks the process that decides about replicas for its state.
const scalingMethod = "deploy.Scaling"

const (
	scalingPeriod = time.Second // between decisions
	// maxDecisions is how many decisions are remembered.
	maxDecisions = 100
	// firstStart is taken for the time that a replica needs to start until one
	// has been seen.
	firstStart = 2 * time.Second
	// longestDispersion is the longest time whose dispersion counts: the number
	// of replicas follows what changes more slowly.
	longestDispersion = time.Second
)

// scaling is what a process decides about replicas. One process of a plan decides,
// which scaler returns; if two do for a moment, only one of their plans is
// made from the one in force.
type scaling struct {
	process string // this one
	members *membership
	worker  *local.Worker
	plans   *plans
	work    func(context.Context, *api.GetWorkRequest) (*api.GetWorkResponse, error) // returns the figures of all processes
	log     *slog.Logger

	memory scalingMemory

	mu        sync.Mutex // guards what follows
	workers   map[string]*scaled
	known     map[string]*api.ScaledWorker // what earlier processes have measured of workers
	decisions []*api.ScalingDecision
	followers map[int]func(*api.ScalingDecision)
	next      int // of followers
}

// scaled is a worker that is autoscaled. Only the scaling loop uses what is not
// in shown.
type scaled struct {
	state   scaler.State
	before  map[string]*api.ProcessWork // the last figures, by process
	service scaler.Estimate
	scv     float64
	figures scaler.Figures
	errors  scaler.Errors
	start   time.Duration
	applied time.Time // when replicas were added that are not ready yet
	shown   *api.ScaledWorker
	wanted  func() // removes the metric
}

// scale decides about the replicas of autoscaled workers until ctx ends.
func (s *scaling) scale(ctx context.Context) {
	tick := time.NewTicker(scalingPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		current := s.members.plan()
		var workers []*plan.Worker
		if current != nil && current.Trial {
			continue // until its configuration has passed
		}
		if current != nil {
			for i := range current.InForce().Workers {
				if w := &current.InForce().Workers[i]; w.Autoscale != nil {
					workers = append(workers, w)
				}
			}
		}
		if len(workers) > 0 && s.scaler(current) != s.process {
			workers = nil
		}
		if len(workers) > 0 {
			s.remember(ctx)
		}
		s.keep(workers)
		if len(workers) == 0 {
			continue
		}
		asked := s.members.now()
		resp, err := s.work(ctx, nil)
		if err != nil {
			continue
		}
		for _, p := range workers {
			s.mu.Lock()
			w := s.workers[p.Name]
			s.mu.Unlock()
			if d := s.scaleWorker(ctx, current, p, w, resp.Processes, asked); d != nil {
				s.decided(d)
				s.memory.saved = time.Time{} // it is written at once
			}
		}
		s.save(ctx)
	}
}

// remember takes what earlier processes have decided and measured, once.
func (s *scaling) remember(ctx context.Context) {
	kept, err := s.memory.read(ctx)
	if err != nil {
		if text := err.Error(); text != s.memory.said && ctx.Err() == nil {
			s.memory.said = text
			s.log.Warn("earlier decisions about replicas are not read; tried again", "error", err)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decisions = append(kept.GetDecisions(), s.decisions...)
	for _, w := range kept.GetWorkers() {
		s.known[w.Worker] = w
	}
}

// save writes what was decided and measured, from time to time.
func (s *scaling) save(ctx context.Context) {
	if !s.memory.due() {
		return
	}
	state := s.scalingState()
	s.mu.Lock()
	for i, w := range state.Workers {
		if !s.workers[w.Worker].service.Measured() { // that of the stage alone is not to be remembered
			state.Workers[i] = proto.CloneOf(w)
			state.Workers[i].ServiceUs = 0
		}
	}
	s.mu.Unlock()
	if err := s.memory.write(ctx, state); err != nil && ctx.Err() == nil {
		s.log.Warn("decisions about replicas are not stored", "error", err)
	}
}

// scaler returns the process that decides about replicas: the first, by name,
// that has the gateway, or any services where there is no gateway, and is not
// autoscaled itself, if there is such a one.
func (s *scaling) scaler(current *members.Current) string {
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	best, rank := "", math.MaxInt
	for _, name := range slices.Sorted(maps.Keys(s.members.entries)) {
		i, ok := current.InstanceOf(name)
		if !ok || len(s.members.entries[name].Services) == 0 {
			continue
		}
		at := 0
		if !slices.Contains(i.Services, "gateway") {
			at++
		}
		if w := current.InForce().Worker(i.Worker); w == nil || w.Autoscale != nil {
			at += 2
		}
		if at < rank {
			best, rank = name, at
		}
	}
	return best
}

// keep makes the workers those that are decided about, and forgets others.
func (s *scaling) keep(workers []*plan.Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, w := range s.workers {
		if !slices.ContainsFunc(workers, func(p *plan.Worker) bool { return p.Name == name }) {
			w.wanted()
			delete(s.workers, name)
		}
	}
	for _, p := range workers {
		if s.workers[p.Name] != nil {
			continue
		}
		w := &scaled{before: map[string]*api.ProcessWork{}, start: firstStart, shown: &api.ScaledWorker{Worker: p.Name, Wanted: uint32(p.Replicas)}}
		if known := s.known[p.Name]; known != nil {
			w.service = scaler.Remembered(known.ServiceUs / 1e6)
		}
		s.workers[p.Name] = w
		m := s.worker.Metrics("scaler")
		m.Gauge("wanted", "Replicas of an autoscaled worker that the model wants.", func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return float64(w.shown.Wanted)
		}, "worker", p.Name)
		w.wanted = func() { m.Remove("wanted", "worker", p.Name) }
	}
}

// scaleWorker decides about a worker by figures that were asked for at a time, and
// carries the decision out. It returns the decision; nil if nothing is done.
func (s *scaling) scaleWorker(ctx context.Context, current *members.Current, p *plan.Worker, w *scaled, figures []*api.ProcessWork, asked time.Time) *api.ScalingDecision {
	w.take(p, figures, asked)
	if w.figures.Ready < p.Replicas && w.applied.IsZero() {
		w.applied = asked
	} else if w.figures.Ready >= p.Replicas && !w.applied.IsZero() {
		w.start, w.applied = asked.Sub(w.applied), time.Time{}
	}
	w.figures.Start = w.start
	var d scaler.Decision
	d, w.state = scaler.Decide(*p.Autoscale, w.state, w.figures, s.members.now())
	w.errors.Decided(p.Autoscale.Percentile, d.Now, s.members.now())
	off, minutes := w.errors.Median()
	shown := &api.ScaledWorker{
		Worker: p.Name, Min: uint32(p.Autoscale.Min), Max: uint32(p.Autoscale.Max), Replicas: uint32(p.Replicas), Ready: uint32(w.figures.Ready),
		Wanted: uint32(d.Wanted), Reason: d.Reason, Rate: w.figures.Rate, Forecast: d.Forecast, ServiceUs: 1e6 * w.figures.Service,
		Utilisation: w.figures.Utilisation, PredictedUs: finite(1e6 * d.Time), TargetUs: float64(p.Autoscale.Target.Microseconds()),
		PredictedNowUs: finite(1e6 * d.Now), MeasuredUs: 1e6 * w.errors.Measured, Measured: w.errors.Count, Error: off, ErrorMinutes: uint32(minutes),
		Unreachable: d.Unreachable,
	}
	if !w.figures.Taken.IsZero() {
		shown.Taken = w.figures.Taken.UTC().Format(time.RFC3339Nano)
	}
	s.mu.Lock()
	w.shown = shown
	s.mu.Unlock()
	decision := &api.ScalingDecision{
		Time: s.members.now().UTC().Format(time.RFC3339Nano), Worker: p.Name, From: uint32(d.From), To: uint32(d.To), Reason: d.Reason,
	}
	switch {
	case d.To == d.From && d.News:
		decision.Reason = cmp.Or(d.Unreachable, "the target is reached again")
		s.log.Info("autoscaling", "worker", p.Name, "replicas", d.From, "reason", decision.Reason)
		return decision
	case d.To == d.From:
		return nil
	}
	text, err := current.InForce().WithReplicas(p.Name, d.To).YAML()
	if err == nil {
		_, err = s.plans.apply(ctx, &api.ApplyPlanRequest{Text: string(text), MadeFrom: current.Generation}, "", d.Reason)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case api.KindOf(err) == codes.Aborted: // the next decision is by the plan that came meanwhile
		s.log.Info("replicas stay: another plan came into force meanwhile", "worker", p.Name)
		decision.Error = err.Error()
	case err != nil:
		s.log.Warn("the number of replicas cannot be changed", "worker", p.Name, "from", d.From, "to", d.To, "reason", d.Reason, "error", err)
		decision.Error = err.Error()
	default:
		s.log.Info("the number of replicas changes", "worker", p.Name, "from", d.From, "to", d.To, "reason", d.Reason)
	}
	return decision
}

// finite returns v, and 0 for what JSON has no number for.
func finite(v float64) float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	return v
}

// decided records a decision and notifies who follows them.
func (s *scaling) decided(d *api.ScalingDecision) {
	s.mu.Lock()
	s.decisions = append(s.decisions, d)
	if over := len(s.decisions) - maxDecisions; over > 0 {
		s.decisions = slices.Delete(s.decisions, 0, over)
	}
	followers := slices.Collect(maps.Values(s.followers))
	s.mu.Unlock()
	for _, f := range followers {
		f(d)
	}
}

// FollowScaling calls f with each decision of this process until ctx ends.
func (s *scaling) FollowScaling(ctx context.Context, f func(*api.ScalingDecision)) {
	s.mu.Lock()
	id := s.next
	s.next++
	s.followers[id] = f
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	delete(s.followers, id)
	s.mu.Unlock()
}

// take makes figures of a worker from those of all processes. Without those of a
// process that should have them, the last ones stay, and get old.
func (w *scaled) take(p *plan.Worker, all []*api.ProcessWork, asked time.Time) {
	f := scaler.Figures{Taken: asked, Replicas: p.Replicas, Service: w.service.Seconds, ServiceSCV: w.scv}
	var cpu, arrivals, quota float64
	var arrived, mean, variance float64 // of measured service times, since the processes' start
	dispersion := map[float64]float64{}
	var weights float64
	now := map[string]*api.ProcessWork{}
	complete := true
	for _, x := range all {
		f.Backlog += float64(x.Waiting)
		if before := w.before[x.Process]; x.Error != "" && before != nil && before.Ready {
			complete = false
			now[x.Process] = before
		}
		if x.Error != "" || x.Worker != p.Name {
			continue
		}
		now[x.Process] = x
		if x.Ready {
			f.Ready++
		}
		quota = min(1, x.Processors)
		before := w.before[x.Process]
		if before == nil || before.Run != x.Run || !before.Ready { // what its start took does not count
			before = &api.ProcessWork{CpuSeconds: x.CpuSeconds, Work: x.Work}
		}
		w.passed(before, x)
		for _, work := range entrance(x) {
			f.Rate += work.RateNow
			arrivals += float64(work.Arrivals)
			arrived += float64(work.Arrivals)
			for _, d := range work.Dispersion {
				if d.Seconds <= longestDispersion.Seconds() {
					dispersion[d.Seconds] += work.Rate * d.Index
				}
			}
			weights += work.Rate
		}
		for _, work := range x.Work {
			if work.Measured == 0 || work.Work != local.StageWork && work.Caller != local.OtherProcesses {
				continue
			}
			n, of := float64(work.Arrivals), float64(work.Measured)
			mean += n * work.Seconds / of
			variance += n * (work.SecondsSquares/of - work.Seconds/of*work.Seconds/of)
		}
		for _, work := range entrance(before) {
			arrivals -= float64(work.Arrivals)
		}
		used := x.CpuSeconds - before.CpuSeconds
		cpu += used
		if span := asked.Sub(w.figures.Taken).Seconds(); !w.figures.Taken.IsZero() && span > 0 {
			f.Utilisation = max(f.Utilisation, used/span/max(quota, 0.01))
		}
	}
	if w.before = now; !complete {
		return // the figures that we have get old
	}
	if weights > 0 {
		for _, over := range slices.Sorted(maps.Keys(dispersion)) {
			// Each replica sees a share, in which bursts are thinner.
			index := 1 + (dispersion[over]/weights-1)*float64(max(1, f.Ready))
			f.Dispersion = append(f.Dispersion, size.MeasuredDispersion{Time: over, Index: max(index, 0.05)})
		}
	}
	if arrived > 0 { // an arrival passes several stages
		mean, variance = mean/arrived, variance/arrived
	}
	w.service = w.service.Supposed(mean / max(quota, 0.01))
	if !w.figures.Taken.IsZero() {
		w.service = w.service.Used(asked.Sub(w.figures.Taken), arrivals, cpu/max(quota, 0.01), f.Utilisation)
	}
	switch {
	case quota > 0 && quota < 1: // the pauses of the quota are in the measured times, and in w.service
		w.scv = 1
	case mean > 0:
		w.scv = min(max(0, variance/(mean*mean)), 10)
	}
	f.Service, f.ServiceSCV, f.Supposed = w.service.Seconds, w.scv, !w.service.Measured()
	w.figures = f
}

// passed takes how long packets were in a process between two looks at it.
func (w *scaled) passed(before, now *api.ProcessWork) {
	seen := map[string]map[float64]uint64{}
	for _, work := range before.GetWork() {
		of := map[float64]uint64{}
		for _, b := range work.Passages {
			of[b.From] = b.Count
		}
		seen[work.Service+" "+work.Caller] = of
	}
	for _, work := range now.GetWork() {
		for _, b := range work.Passages {
			if n := b.Count - seen[work.Service+" "+work.Caller][b.From]; n > 0 && n <= b.Count {
				w.errors.Times(b.From, b.To, n)
			}
		}
	}
}

// GetScaling returns the state of the process that decides about replicas.
func (s *scaling) GetScaling(ctx context.Context, _ *api.GetScalingRequest) (*api.GetScalingResponse, error) {
	current := s.members.plan()
	if current == nil {
		return nil, api.Errorf(codes.Unavailable, "this process has not seen the plan yet; try again")
	}
	process := s.scaler(current)
	if process == s.process || process == "" {
		return s.scalingState(), nil
	}
	p := s.members.others()[process]
	if p == nil {
		return &api.GetScalingResponse{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	answer, err := p.Request(ctx, scalingMethod, nil)
	if err != nil || len(answer) == 0 || answer[0] != members.AnswerOK {
		return nil, api.Errorf(codes.Unavailable, "process %s, which decides about replicas, does not answer: %v", process, err)
	}
	resp := &api.GetScalingResponse{}
	if err := weft.Decode(answer[1:], resp); err != nil {
		return nil, api.Errorf(codes.Internal, "decode the answer of process %s: %w", process, err)
	}
	return resp, nil
}

// scalingState returns what this process decides about replicas.
func (s *scaling) scalingState() *api.GetScalingResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &api.GetScalingResponse{Process: s.process, Decisions: slices.Clone(s.decisions)}
	for _, w := range s.workers {
		resp.Workers = append(resp.Workers, w.shown)
	}
	slices.SortFunc(resp.Workers, func(a, b *api.ScaledWorker) int { return strings.Compare(a.Worker, b.Worker) })
	return resp
}

// encodeScaling answers another process's request for that.
func (s *scaling) encodeScaling() ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend([]byte{members.AnswerOK}, s.scalingState())
}
