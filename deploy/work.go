package deploy

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/cputime"
)

// workMethod asks a process for its live figures of work.
const workMethod = "deploy.Work"

// workTimeout is how long a process may take to answer.
const workTimeout = time.Second

// The spans over which rates are shown.
const (
	rateNowSpan = time.Second
	rateSpan    = 10 * time.Second
)

// liveWork returns the live figures of this process.
func (n *Node) liveWork(now time.Time) *api.ProcessWork {
	n.members.mu.Lock()
	current := n.members.current
	ready := !slices.ContainsFunc(n.members.entry.Services, func(s members.ServiceState) bool { return s.State != members.StateReady }) && len(n.members.entry.Services) > 0
	n.members.mu.Unlock()
	p := &api.ProcessWork{
		Process: n.config.Process, Run: n.members.self, CpuSeconds: cputime.Used().Seconds(), Processors: float64(runtime.GOMAXPROCS(0)),
		Waiting: uint64(n.packets.Waiting()), Ready: ready, Limits: n.worker.Limits(now.UnixNano()),
	}
	if current != nil {
		mine, _ := current.InstanceOf(n.config.Process)
		p.Worker = mine.Worker
		if w := current.InForce().Worker(mine.Worker); w != nil && w.CPUQuota > 0 {
			p.Processors = min(p.Processors, w.CPUQuota)
		}
	}
	for _, o := range n.worker.Work() {
		t := o.Times()
		w := &api.Work{
			Service: o.Service, Work: o.Name, Caller: o.Caller, Arrivals: o.Count(),
			Measured: t.Count, Seconds: t.Sum, SecondsSquares: t.Squares, Waits: t.Waits, WaitSeconds: t.WaitSum,
		}
		w.RateNow, _ = o.Rate(now, rateNowSpan)
		w.Rate, _ = o.Rate(now, rateSpan)
		for _, d := range o.Dispersion(now) {
			w.Dispersion = append(w.Dispersion, &api.WorkDispersion{Seconds: d.Over.Seconds(), Index: d.Index})
		}
		services, passages := o.Histograms()
		w.Times, w.Passages = workTimes(services), workTimes(passages)
		p.Work = append(p.Work, w)
	}
	return p
}

// workTimes returns a histogram as it is sent.
func workTimes(list []local.Bucket) (times []*api.WorkTimes) {
	for _, b := range list {
		times = append(times, &api.WorkTimes{From: b.From.Seconds(), To: b.To.Seconds(), Count: uint64(b.Count)})
	}
	return times
}

// encodeWork answers another process's request for work.
func (n *Node) encodeWork() ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend([]byte{members.AnswerOK}, n.liveWork(time.Now()))
}

// GetWork returns the live figures of all processes. A process that does not
// answer in time has an error instead.
func (n *Node) GetWork(ctx context.Context, _ *api.GetWorkRequest) (*api.GetWorkResponse, error) {
	peers := n.members.others()
	names := slices.Sorted(maps.Keys(peers))
	list := make([]*api.ProcessWork, len(names)+1)
	list[0] = n.liveWork(time.Now())
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() {
			p := &api.ProcessWork{}
			list[i+1] = p
			answer, err := peers[name].Request(ctx, workMethod, nil)
			switch {
			case err != nil:
				p.Error = "it does not answer: " + err.Error()
			case len(answer) == 0 || answer[0] != members.AnswerOK:
				p.Error = "it has no figures; it may be of another version"
			default:
				if err := proto.Unmarshal(answer[1:], p); err != nil {
					p.Error = "its answer cannot be read: " + err.Error()
				}
			}
			p.Process = name
		})
	}
	asked.Wait()
	slices.SortFunc(list, func(a, b *api.ProcessWork) int { return strings.Compare(a.Process, b.Process) })
	return &api.GetWorkResponse{Processes: list}, nil
}

// entrance returns the work that arrives in a process from outside: the packets
// of its first stage, and the calls from other processes.
func entrance(p *api.ProcessWork) (list []*api.Work) {
	var stage *api.Work
	for _, w := range p.GetWork() {
		switch {
		case w.Work == local.StageWork && (stage == nil || w.Arrivals > stage.Arrivals):
			stage = w
		case w.Caller == local.OtherProcesses:
			list = append(list, w)
		}
	}
	if stage != nil {
		list = append(list, stage)
	}
	return list
}
