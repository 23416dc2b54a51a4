package oshi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/test/measure"
)

// caching is a case of oshi-cache: how many flows there are, and what Open vSwitch
// is told of its caches.
type caching struct {
	name     string
	flows    int
	settings map[string]string // other_config
	first    bool              // of the paper's first experiment
}

// uncached reports whether no flow is cached.
func (c *caching) uncached() bool { return c.settings["flow-limit"] == "0" }

const cacheFlows = 1000

// cachings are the cases, each experiment's first being what the others are compared with.
func cachings() []caching {
	of := func(prob, smc, limit string) map[string]string {
		return map[string]string{"emc-insert-inv-prob": prob, "smc-enable": smc, "flow-limit": limit}
	}
	const limit = "200000" // the default, as is a probability of 1 in 100
	list := []caching{
		{"EMC", cacheFlows, of("1", "false", limit), true},
		{"SMC", cacheFlows, of("0", "true", limit), true},
		{"dpcls", cacheFlows, of("0", "false", limit), true},
		{"slow path", cacheFlows, of("0", "false", "0"), true},
	}
	for _, n := range []int{1, 100, 1000, mostFlows} {
		list = append(list, caching{fmt.Sprintf("%d flows", n), n, of("100", "false", limit), false})
	}
	return list
}

const (
	mostFlows = 10000
	cacheRate = 5000 // packets a second
)

func cache() experiments.Experiment {
	return experiments.Experiment{
		Name: "oshi-cache", Title: "what a packet costs by the cache of Open vSwitch that knows its flow, and by the number of flows",
		Paper: paper, Figure: "section VII.E",
		Claim: `For the same traffic, 40 % of a processor if the kernel's flow cache knows the flow, 94 % if packets are dealt with in user space.
Increasing the number of active flows in the tables does not influence the forwarding performance, as long as they fit.`,
		Method: fmt.Sprintf(`One switch of Open vSwitch in user space with %d entries that each match a UDP source port; packets of 1,000 bytes at
%d/s, whose source ports take turns; processor time of ovs-vswitchd, all threads, for each packet. First: %d flows with the exact match cache
(EMC, every flow inserted), the signature match cache (SMC, without EMC), the classifier of megaflows alone (dpcls), and the slow path, where no flow
may be cached (flow-limit 0), so that each packet is an upcall. Then, with the caches as a user gets them (EMC, one flow in 100 inserted;
dpcls), by the number of flows, each with an entry and a megaflow of its own. Before a sample, flows are sent until they are cached. The columns emc to
upcalls are percent of lookups, by Open vSwitch's own counters.`, mostFlows, cacheRate, cacheFlows),
		Deviation: `The paper's fast path is a cache in the kernel and its slow path a crossing to user space and back; here both are in one
process, so that an upcall costs no crossing, while receiving and sending, which the kernel has for nothing, are system calls in all cases.
The paper does not say how many flows it had.`,
		Runs: 10, QuickRuns: 5, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Value(paperValues.Number("section VII.E", "utilisation", "user space")/paperValues.Number("section VII.E", "utilisation", "kernel cache"), .25).OfRatio().Said("slow path", "94 % to 40 %"),
			experiments.Value(1, .1).OfRatio().Said("flows", "no influence"),
		},
		Columns: []string{"flows", "cost_us", "emc", "smc", "megaflow", "upcalls", "lost"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			open := func(label string) *common {
				return &common{Open: func(ctx context.Context) (*bed, error) { return openCache(ctx, label) }}
			}
			cached, uncached := open("cache"), open("slow") // apart: a limit of 0 has effects for long
			for _, of := range cachings() {
				from := cached
				if of.uncached() {
					from = uncached
				}
				list = append(list, use(from, of.name, func(context.Context, *bed) error { return nil },
					func(ctx context.Context, b *bed) ([][]string, error) { return b.cached(ctx, of) }))
			}
			return list
		},
		Lasting: true, Sum: sumCache,
	}
}

// openCache is a switch with its entries.
func openCache(ctx context.Context, label string) (b *bed, err error) {
	b, err = openFirst(ctx, label, &topology.Topology{
		Switches: []topology.Switch{{Name: "s1"}}, Hosts: []topology.Host{{Name: "h1", Switch: "s1"}, {Name: "h2", Switch: "s1"}},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	measure.Differs(ctx, "flows are kept for ten minutes (max-idle)")
	if _, err = b.VSCtl(ctx, "set", "Open_vSwitch", ".", "other_config:max-idle=600000"); err != nil {
		return nil, err
	}
	var entries strings.Builder
	in, out := b.port("s1", "h1"), b.port("s1", "h2")
	line := func(format string, args ...any) { fmt.Fprintf(&entries, format+"\n", args...) }
	for i := range mostFlows {
		line("priority=%d,in_port=%d,udp,tp_src=%d,actions=output:%d", flow.PriorityOperator, in, sourcePort+i, out)
	}
	line("priority=%d,arp,in_port=%d,actions=output:%d", flow.PriorityOperator, in, out)
	line("priority=%d,in_port=%d,actions=output:%d", flow.PriorityOperator, out, in)
	file := filepath.Join(b.Dir(), "entries")
	if err = os.WriteFile(file, []byte(entries.String()), 0o600); err != nil {
		return nil, err
	}
	_, err = b.OfCtl(ctx, "s1", "add-flows", file)
	return b, err
}

// cached takes a sample.
func (b *bed) cached(ctx context.Context, of caching) ([][]string, error) {
	set := []string{"set", "Open_vSwitch", "."}
	for key, value := range of.settings {
		set = append(set, fmt.Sprintf("other_config:%s=%s", key, value))
	}
	if _, err := b.VSCtl(ctx, set...); err != nil {
		return nil, err
	}
	if of.uncached() {
		if _, err := b.AppCtl(ctx, "dpctl/del-flows"); err != nil {
			return nil, err
		}
	}
	t := stream{from: "h1", to: "h2", size: packetSize, rate: cacheRate, flows: of.flows}
	if err := b.fillCaches(ctx, t, of); err != nil {
		return nil, err
	}
	t.count = int(2 * loadTime.Seconds() * cacheRate)
	var before, after lookups
	var began, used time.Duration
	look := func(at *lookups, time *time.Duration) (err error) {
		if *at, err = b.lookups(ctx); err == nil {
			*time, err = b.switching("s1")
		}
		return err
	}
	c, err := t.whole(ctx, b.Lab, func() error { return look(&before, &began) }, func() error { return look(&after, &used) })
	if err != nil {
		return nil, err
	}
	row := []string{strconv.Itoa(of.flows), written((used - began).Seconds() * 1e6 / float64(c.sent))}
	for _, share := range after.since(before).percent() {
		row = append(row, written(share))
	}
	return [][]string{append(row, strconv.Itoa(c.sent-c.received))}, nil
}

// fillCaches sends flows until they are cached, as far as they are to be.
func (b *bed) fillCaches(ctx context.Context, t stream, of caching) error {
	t.count = max(of.flows, 200)
	for range 20 {
		before, err := b.lookups(ctx)
		if err != nil {
			return err
		}
		if _, err := t.send(ctx, b.Lab); err != nil {
			return err
		}
		after, err := b.lookups(ctx)
		if err != nil {
			return err
		}
		share := after.since(before).percent()
		if of.uncached() && share[3] > 99 || !of.uncached() && share[3] < 1 {
			return nil
		}
	}
	return fmt.Errorf("%s: the flows are not cached as they are to be", of.name)
}

// lookups is how packets were looked up, by what knew them: EMC, SMC, the classifier of
// megaflows, none of them.
type lookups [4]float64

// lookups reads the counters.
func (b *bed) lookups(ctx context.Context) (lookups, error) {
	out, err := b.AppCtl(ctx, "dpif-netdev/pmd-stats-show")
	if err != nil {
		return lookups{}, err
	}
	return parseLookups(out)
}

// parseLookups reads what pmd-stats-show prints.
func parseLookups(text string) (l lookups, err error) {
	found := 0
	for _, line := range strings.Split(text, "\n") {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		at, counts := map[string]int{"emc hits": 0, "smc hits": 1, "megaflow hits": 2, "miss with success upcall": 3, "miss with failed upcall": 3}[name]
		if !counts {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return l, fmt.Errorf("count lookups: %q: %w", line, err)
		}
		l[at] += n
		found++
	}
	if found < 5 {
		return l, fmt.Errorf("count lookups: want five counters in %q", text)
	}
	return l, nil
}

func (l lookups) since(before lookups) lookups {
	for i := range l {
		l[i] -= before[i]
	}
	return l
}

// percent is the share of each.
func (l lookups) percent() lookups {
	all := l[0] + l[1] + l[2] + l[3]
	for i := range l {
		l[i] *= 100 / max(all, 1)
	}
	return l
}

// ofCache is one line of by_case.
type ofCache struct {
	Case     string        `json:"case"`
	Flows    int           `json:"flows"`
	Cost     figure.Number `json:"cost_us"`
	EMC      figure.Number `json:"emc_percent"`
	SMC      figure.Number `json:"smc_percent"`
	Megaflow figure.Number `json:"megaflow_percent"`
	Upcalls  figure.Number `json:"upcalls_percent"`
}

// sumCache compares the cases with the paper and draws them.
func sumCache(c *experiments.Context) error {
	cost := figure.Axis{Label: "processor time for each packet, µs"}
	caches := figure.Panel{Title: fmt.Sprintf("%d flows", cacheFlows), Y: cost}
	flows := figure.Panel{Title: "caches as a user gets them", X: figure.Axis{Label: "flows", Log: true}, Y: cost}
	bars, line := figure.Series{Name: "by cache", Kind: figure.Bars, Colour: 1}, figure.Series{Name: "by flows", Kind: figure.Line, Colour: 2}
	var list []ofCache
	for _, of := range cachings() {
		at := c.Median("cost_us", of.name, nil)
		if of.first {
			caches.X.Names = append(caches.X.Names, of.name)
			bars.Points = append(bars.Points, figure.At(float64(len(bars.Points)), at, of.name))
		} else {
			line.Points = append(line.Points, figure.At(float64(of.flows), at, of.name))
		}
		share := func(column string) figure.Number { return figure.Number(c.Median(column, of.name, nil).Median) }
		list = append(list, ofCache{of.name, of.flows, figure.Number(at.Median), share("emc"), share("smc"), share("megaflow"), share("upcalls")})
	}
	caches.Series, flows.Series = []figure.Series{bars}, []figure.Series{line}
	c.Draw(figure.Figure{Name: "section VII.E", Title: "what a packet costs Open vSwitch by what knows its flow", Panels: []figure.Panel{caches, flows}})

	ratio := func(a, b string) experiments.Claim {
		return experiments.Claim{What: fmt.Sprintf("processor time, %s to %s", a, b), Paper: "-"}.Of(c.Ratio("cost_us", a, b, nil)).Beside(a, b)
	}
	slow := ratio("slow path", "EMC")
	slow.Says = c.Statement("slow path")
	c.Compare(slow, ratio("slow path", "dpcls"), ratio("SMC", "EMC"), ratio("dpcls", "EMC"))
	for _, n := range []string{"100 flows", "1000 flows", fmt.Sprintf("%d flows", mostFlows)} {
		claim := ratio(n, "1 flows")
		claim.Says = c.Statement("flows")
		c.Compare(claim)
	}
	c.Figure("by_case", list)
	return nil
}
