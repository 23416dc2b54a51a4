package bench

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"github.com/weft-sdn/weft/test/measure"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// benchRerouteRun is what one cut link did. Times are in milliseconds.
type benchRerouteRun struct {
	From        string  `json:"from"`
	To          string  `json:"to"`
	Link        string  `json:"link"`
	Hops        int     `json:"hops"` // switches of the path that was cut
	OutageMS    float64 `json:"outage_ms"`
	Lost        int     `json:"lost"`
	NoticedMS   float64 `json:"noticed_ms"`
	DecidedMS   float64 `json:"decided_ms"`
	InstalledMS float64 `json:"installed_ms"`
	SaysMS      float64 `json:"controller_says_ms"`
	FlowMods    int     `json:"flow_mods"`
	Again       int     `json:"again"`  // flow-mods that changed nothing
	Routes      int     `json:"routes"` // that moved
	Alone       bool    `json:"alone"`  // the controller was stopped
}

func (run *benchRerouteRun) String() string {
	if run.Alone {
		return fmt.Sprintf("%s to %s, %s cut while the controller is stopped: outage %.1f ms, %d lost", run.From, run.To, run.Link, run.OutageMS, run.Lost)
	}
	return fmt.Sprintf("%s to %s, %s cut: outage %.1f ms, %d lost; noticed %.2f, decided %.2f, installed %.2f, says %.2f ms; %d routes, %d flow-mods, %d again",
		run.From, run.To, run.Link, run.OutageMS, run.Lost, run.NoticedMS, run.DecidedMS, run.InstalledMS, run.SaysMS, run.Routes, run.FlowMods, run.Again)
}

// benchReroute is what reroute prints.
type benchReroute struct {
	benchTaken
	Topology  string             `json:"topology"`
	Failover  bool               `json:"failover"`
	Outage    benchSpread        `json:"outage_ms"`
	Alone     *benchSpread       `json:"alone_ms,omitempty"` // of the outage, with the controller stopped
	Noticed   benchSpread        `json:"noticed_ms"`
	Decided   benchSpread        `json:"decided_ms"`
	Installed benchSpread        `json:"installed_ms"`
	Says      benchSpread        `json:"controller_says_ms"`
	Unmoved   int                `json:"unmoved"` // runs in which no reroute was seen on the wire
	Marks     []benchMark        `json:"marks"`
	Detail    []*benchRerouteRun `json:"detail"`
}

// The marks, in milliseconds.
const (
	benchInstalledMost = 10
	benchOutageMost    = 20
	benchFailoverMost  = 5
	benchAloneMost     = 1.1
)

// sum fills in what follows from the runs.
func (r *benchReroute) sum() {
	spread := func(get func(*benchRerouteRun) float64, unmoved bool) benchSpread {
		var v []float64
		for _, run := range r.Detail {
			if !run.Alone && (unmoved || run.InstalledMS > 0) {
				v = append(v, get(run))
			}
		}
		return newBenchSpread(v)
	}
	outages := map[bool][]float64{}
	for _, run := range r.Detail {
		outages[run.Alone] = append(outages[run.Alone], run.OutageMS)
	}
	r.Outage = spread(func(run *benchRerouteRun) float64 { return run.OutageMS }, true)
	r.Noticed = spread(func(run *benchRerouteRun) float64 { return run.NoticedMS }, true)
	r.Decided = spread(func(run *benchRerouteRun) float64 { return run.DecidedMS }, false)
	r.Installed = spread(func(run *benchRerouteRun) float64 { return run.InstalledMS }, false)
	r.Says = spread(func(run *benchRerouteRun) float64 { return run.SaysMS }, false)
	for _, run := range r.Detail {
		if !run.Alone && run.InstalledMS == 0 {
			r.Unmoved++
		}
	}
	if r.Failover { // new detours are not urgent: the old ones carry the traffic
		alone := newBenchSpread(outages[true])
		r.Alone = &alone
		r.Marks = []benchMark{
			newBenchMark("outage of the ping stream, median ms", r.Outage.interval(), benchFailoverMost),
			newBenchMark("the same, to that while the controller is stopped", measure.RatioOfMedians(outages[false], outages[true]), benchAloneMost),
		}
		return
	}
	r.Marks = []benchMark{
		newBenchMark("port-down to reroute installed, median ms", r.Installed.interval(), benchInstalledMost),
		newBenchMark("outage of the ping stream, median ms", r.Outage.interval(), benchOutageMost),
	}
}

func (r *benchReroute) table(w io.Writer) error {
	how := "without fast-failover groups"
	if r.Failover {
		how = "with fast-failover groups"
	}
	fmt.Fprintf(w, "%d times a link cut under a ping stream, topology %s, %s, in ms\n", len(r.Detail), r.Topology, how)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tMEDIAN\t95 %\tP95\tMAX")
	type row struct {
		what string
		s    benchSpread
	}
	rows := []row{
		{"outage", r.Outage}, {"noticed: carrier lost to port-status", r.Noticed}, {"decided: port-status to last flow-mod that changes a route", r.Decided},
		{"installed: port-status to last barrier reply", r.Installed}, {"the controller says", r.Says},
	}
	if r.Alone != nil {
		rows = slices.Insert(rows, 1, row{"the same while the controller is stopped", *r.Alone})
	}
	for _, row := range rows {
		fmt.Fprintf(t, "%s\t%.2f\t%s\t%.2f\t%.2f\n", row.what, row.s.Median, benchInterval(row.s.CI95, benchTwo), row.s.P95, row.s.Max)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Unmoved > 0 {
		fmt.Fprintf(w, "in %d runs no route was seen to move\n", r.Unmoved)
	}
	for _, m := range r.Marks {
		fmt.Fprintln(w, m)
	}
	return r.writeTaken(w)
}

// benchReplies is which packets of a stream were answered.
type benchReplies struct {
	mu  sync.Mutex // guards got
	got map[int]time.Time
}

// add notes an answer.
func (b *benchReplies) add(_, _ string, seq int, rtt time.Duration) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.got == nil {
		b.got = map[int]time.Time{}
	}
	b.got[seq] = now.Add(-rtt)
}

// outage returns how long the longest run of unanswered packets was, from the
// sending of the first to that of the next answered one, in milliseconds; and
// how many were not answered in all.
func (b *benchReplies) outage(sent int) (ms float64, lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	interval := benchMilliseconds(benchStreamInterval)
	last, lastAt := -1, time.Time{}
	for seq := range sent {
		at, ok := b.got[seq]
		if !ok {
			lost++
			continue
		}
		if run := seq - last - 1; run > 0 {
			gap := float64(run) * interval
			if !lastAt.IsZero() {
				gap = max(gap, benchMilliseconds(at.Sub(lastAt))-interval)
			}
			ms = max(ms, gap)
		}
		last, lastAt = seq, at
	}
	return max(ms, float64(sent-last-1)*interval), lost
}

// benchCarrier notes when the kernel announces that a link has lost carrier.
type benchCarrier struct {
	done chan struct{}

	mu    sync.Mutex // guards first
	first time.Time
}

// newBenchCarrier listens in a network namespace.
func newBenchCarrier(name string) (*benchCarrier, error) {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", name, err)
	}
	defer ns.Close()
	c := &benchCarrier{done: make(chan struct{})}
	updates := make(chan netlink.LinkUpdate, 64)
	if err := netlink.LinkSubscribeWithOptions(updates, c.done, netlink.LinkSubscribeOptions{Namespace: &ns}); err != nil {
		return nil, fmt.Errorf("listen to the kernel in %s: %w", name, err)
	}
	go func() {
		for u := range updates {
			if now := time.Now(); u.IfInfomsg.Flags&unix.IFF_RUNNING == 0 {
				c.mu.Lock()
				if c.first.IsZero() {
					c.first = now
				}
				c.mu.Unlock()
			}
		}
	}()
	return c, nil
}

func (c *benchCarrier) close() { close(c.done) }

// take returns when carrier was lost first since the last call.
func (c *benchCarrier) take() (at time.Time, seen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at = c.first
	c.first = time.Time{}
	return at, !at.IsZero()
}

// benchEvent reads the body of an event.
func benchEvent(body []byte, into proto.Message) error {
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, into)
}
