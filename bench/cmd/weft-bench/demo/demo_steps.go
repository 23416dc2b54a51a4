package demo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"
)

func (d *Demo) startLab(ctx context.Context) (string, error) {
	topo, err := topology.Resolve(d.topology)
	if err != nil {
		return "", err
	}
	exe, err := companion.Find("weft")
	if err != nil {
		return "", err
	}
	began := time.Now()
	d.Lab, err = lab.Up(ctx, topo, lab.Options{Name: demoLab, Controllers: []string{"tcp:" + d.listen}, KeeperCommand: []string{exe, "lab", "keeper"}, Weft: exe})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d switches, %d links, %d loops, %d hosts in %.1f s", len(topo.Switches), len(topo.Links), topo.Loops(), len(topo.Hosts), time.Since(began).Seconds()), nil
}

// AwaitDiscovery waits until all of the lab is known and the broadcast tree is
// in force.
func (d *Demo) AwaitDiscovery(ctx context.Context) (string, error) {
	topo := d.Lab.Topology()
	began := time.Now()
	for {
		var missing string
		err := d.Ask(ctx, func(n *cli.Controller) error {
			switches, err := n.ListSwitches(n.Ctx, &api.ListSwitchesRequest{})
			if err != nil {
				return err
			}
			links, err := n.ListLinks(n.Ctx, &api.ListLinksRequest{})
			if err != nil {
				return err
			}
			roles, err := n.ListPortRoles(n.Ctx, &api.ListPortRolesRequest{})
			if err != nil {
				return err
			}
			flooding, err := n.GetFlooding(n.Ctx, &api.GetFloodingRequest{})
			if err != nil {
				return err
			}
			up := count(switches.Switches, func(s *api.Switch) bool { return s.Connected })
			linked := count(links.Links, func(l *api.Link) bool { return l.State == "up" })
			edges := count(roles.Ports, func(p *api.PortRole) bool { return p.Role == "edge" })
			switch {
			case up < len(topo.Switches):
				missing = fmt.Sprintf("%d of %d switches", up, len(topo.Switches))
			case linked < 2*len(topo.Links):
				missing = fmt.Sprintf("%d of %d links", linked, 2*len(topo.Links))
			case edges < len(topo.Hosts):
				missing = fmt.Sprintf("%d of %d host ports", edges, len(topo.Hosts))
			case flooding.Committed != flooding.Wanted || len(flooding.Ports) < 2*(len(topo.Switches)-1):
				missing = "the broadcast tree is not in force"
			}
			return nil
		})
		switch {
		case err == nil && missing == "":
			return fmt.Sprintf("in %.1f s", time.Since(began).Seconds()), nil
		case time.Since(began) > 30*time.Second && err != nil:
			return "", err
		case time.Since(began) > 30*time.Second:
			return "", errors.New("after 30 s: " + missing)
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func count[T any](list []T, is func(T) bool) (n int) {
	for _, v := range list {
		if is(v) {
			n++
		}
	}
	return n
}

func (d *Demo) pingAll(ctx context.Context, v6 bool) (string, error) {
	results, err := d.Lab.PingAll(ctx, d.Lab.AllPairs(v6), traffic.PingOptions{IPv6: v6, Count: 2})
	if err != nil {
		return "", err
	}
	sent, received, first := 0, 0, []float64{}
	for _, r := range results {
		sent, received = sent+r.Sent, received+r.Received
		first = append(first, r.Max)
	}
	figure := fmt.Sprintf("%d pairs, %d of %d answered, first packet median %.1f ms", len(results), received, sent, quantile.Median(first))
	if received < sent {
		return figure, errors.New("packets were lost")
	}
	return figure, nil
}

var ofctlEntry = regexp.MustCompile(`cookie=(0x[0-9a-f]+), duration=([0-9.]+)s, (table=\d+), n_packets=\d+, n_bytes=\d+, (.*)`)

// ages returns, for every flow entry of every switch as ovs-ofctl prints it
// but for counters, its age in seconds.
func (d *Demo) ages(ctx context.Context) (map[string]float64, error) {
	ages := map[string]float64{}
	for _, s := range d.Lab.Topology().Switches {
		lines, err := d.Lab.OfctlDumpFlows(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			m := ofctlEntry.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("cannot read the entry %q", line)
			}
			age, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, err
			}
			ages[s.Name+" "+m[1]+" "+m[3]+" "+m[4]] = age
		}
	}
	return ages, nil
}

// ownerOf returns the owner of an entry, a key of ages.
func ownerOf(entry string) flow.Owner {
	fields := strings.Fields(entry)
	cookie, err := strconv.ParseUint(fields[1], 0, 64)
	if err != nil {
		return flow.OwnerForeign
	}
	return flow.Cookie(cookie).Owner()
}

// compareFlows compares, switch by switch, the cookies of the entries that the
// controller reports with those that ovs-ofctl does.
func (d *Demo) compareFlows(ctx context.Context) (string, error) {
	total := 0
	for _, s := range d.Lab.Topology().Switches {
		lines, err := d.Lab.OfctlDumpFlows(ctx, s.Name)
		if err != nil {
			return "", err
		}
		var theirs, ours []string
		for _, line := range lines {
			if m := ofctlEntry.FindStringSubmatch(line); m != nil {
				v, err := strconv.ParseUint(m[1], 0, 64)
				if err != nil {
					return "", err
				}
				theirs = append(theirs, fmt.Sprintf("%016x", v))
			}
		}
		err = d.Ask(ctx, func(n *cli.Controller) error {
			resp, err := n.ReadFlows(n.Ctx, &api.ReadFlowsRequest{Dpid: s.DPID.String()})
			if err != nil {
				return err
			}
			for _, f := range resp.Flows {
				ours = append(ours, f.Cookie)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		slices.Sort(theirs)
		slices.Sort(ours)
		if !slices.Equal(theirs, ours) {
			return "", fmt.Errorf("%s: the controller reports %d entries, ovs-ofctl %d", s.Name, len(ours), len(theirs))
		}
		total += len(ours)
	}
	return fmt.Sprintf("%d entries on %d switches", total, len(d.Lab.Topology().Switches)), nil
}

// route returns two hosts that are far from each other, and the first two
// switches of the route between them. A forwarding service that has just been
// started is given the time to read its routes off the switches.
func (d *Demo) route(ctx context.Context) (from, to, a, b string, err error) {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if from, to, a, b, err = d.routeNow(ctx); err == nil || ctx.Err() != nil || time.Now().After(end) {
			return from, to, a, b, err
		}
	}
}

// routeNow is route without waiting.
func (d *Demo) routeNow(ctx context.Context) (from, to, a, b string, err error) {
	names, hosts := map[string]string{}, map[string]string{}
	for _, s := range d.Lab.Topology().Switches {
		names[s.DPID.String()] = s.Name
	}
	for _, h := range d.Lab.Topology().Hosts {
		hosts[h.MAC.String()] = h.Name
	}
	err = d.Ask(ctx, func(n *cli.Controller) error {
		resp, err := n.ListRoutes(n.Ctx, &api.ListRoutesRequest{})
		if err != nil {
			return err
		}
		most := 1
		for _, r := range resp.Routes {
			if len(r.Hops) > most && hosts[r.Src] != "" && hosts[r.Dst] != "" {
				most = len(r.Hops)
				from, to, a, b = hosts[r.Src], hosts[r.Dst], names[r.Hops[0].Dpid], names[r.Hops[1].Dpid]
			}
		}
		if most == 1 {
			return errors.New("no route crosses a link")
		}
		return nil
	})
	return from, to, a, b, err
}

// wholeStream is the interval between packets where a lost one is a failure. On a busy machine a
// switch may not run for a second, and its sockets hold only some hundred packets meanwhile.
const wholeStream = 10 * time.Millisecond

// stream pings on in the background; the result comes when it is through.
func (d *Demo) stream(ctx context.Context, from, to string, n int, interval time.Duration) <-chan traffic.PingResult {
	result := make(chan traffic.PingResult, 1)
	go func() {
		r, err := d.Lab.Ping(ctx, from, to, traffic.PingOptions{Count: n, Interval: interval})
		if err != nil {
			r.Error = err.Error()
		}
		result <- r
	}()
	return result
}

func (d *Demo) cutLink(ctx context.Context) (string, error) {
	from, to, a, b, err := d.route(ctx)
	if err != nil {
		return "", err
	}
	result := d.stream(ctx, from, to, 1000, 2*time.Millisecond)
	time.Sleep(500 * time.Millisecond)
	if err := d.Lab.LinkDown(ctx, a, b); err != nil {
		return "", err
	}
	r := <-result
	figure := fmt.Sprintf("%s-%s cut, %s to %s every 2 ms: %d of %d lost, outage %.0f ms", a, b, from, to, r.Lost(), r.Sent, r.Outage)
	if err := d.Lab.LinkUp(ctx, a, b); err != nil {
		return figure, err
	}
	if _, err := d.AwaitDiscovery(ctx); err != nil {
		return figure, err
	}
	if r.Error != "" {
		return figure, errors.New(r.Error)
	}
	if r.Outage > 1000 {
		return figure, errors.New("the outage was longer than a second")
	}
	return figure, nil
}

// killController kills the controller under a running ping, restarts it, and
// compares the flow entries of all switches before and after by their ages.
func (d *Demo) killController(ctx context.Context) (string, error) {
	from, to, _, _, err := d.route(ctx)
	if err != nil {
		return "", err
	}
	time.Sleep(3 * time.Second) // let entries grow old enough to tell a rewritten one
	before, err := d.ages(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	result := d.stream(ctx, from, to, 800, wholeStream)
	time.Sleep(500 * time.Millisecond)
	p := d.controllerProcess()
	if p == nil {
		return "", errors.New("the controller is not running")
	}
	if err := p.Kill(); err != nil {
		return "", err
	}
	if err := (planned{d}).endWorkers(); err != nil { // those of a plan would go on
		return "", err
	}
	time.Sleep(time.Second)
	if _, err := d.startController(ctx); err != nil {
		return "", err
	}
	if _, err := d.AwaitDiscovery(ctx); err != nil {
		return "", err
	}
	r := <-result
	time.Sleep(time.Second)
	passed := time.Since(began).Seconds() // however long it takes to read the entries, they are older
	after, err := d.ages(ctx)
	if err != nil {
		return "", err
	}
	var rewritten, gone, added []string
	heard := 0 // entries of addresses that hosts have used for the first time meanwhile
	for e, age := range before {
		now, ok := after[e]
		switch {
		case !ok:
			gone = append(gone, e)
		case now < age+passed-1:
			rewritten = append(rewritten, e)
		}
	}
	for e := range after {
		if _, was := before[e]; was {
			continue
		}
		if ownerOf(e) == flow.OwnerNeighbours {
			heard++
			continue
		}
		added = append(added, e)
	}
	figure := fmt.Sprintf("%d of %d packets lost; of %d entries %d rewritten, %d gone, %d new, %d of addresses heard meanwhile", r.Lost(), r.Sent, len(before), len(rewritten), len(gone), len(added), heard)
	switch {
	case r.Error != "":
		return figure, errors.New(r.Error)
	case r.Lost() > 0:
		return figure, errors.New("an established flow was disturbed")
	}
	if all := slices.Concat(rewritten, gone, added); len(all) > 0 {
		return figure, fmt.Errorf("entries that were right were written, such as %s", slices.Min(all))
	}
	return figure, nil
}
