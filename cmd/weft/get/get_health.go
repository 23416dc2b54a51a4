package get

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// HealthResult is what one look at the controller has found.
type HealthResult struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, warning or failing
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// The states of a check.
const (
	HealthOK      = "ok"
	HealthWarning = "warning"
	HealthFailing = "failing"
)

// errUnhealthy is the command's error once the table has said what fails.
var errUnhealthy = errors.New("the controller is not healthy: see the checks that fail")

func getHealth(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "health",
		Short: "Look at everything that can be wrong, and say how to mend it",
		Long: `Look at the controller's processes, the store of what it keeps, the switches,
the entries that they should have, links, hosts whose place is claimed, the
broadcast tree, heartbeats and limits of the configuration that were reached, and
say what is wrong and how to mend it. Exit status 1 if anything fails; a warning is no failure.`,
		Example: `  weft get health
  weft get health -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		list, err := CheckHealth(c)
		if err != nil {
			return cli.View{}, err
		}
		workers, err := c.ListWorkers(c.Ctx, &api.ListWorkersRequest{})
		if err != nil {
			return cli.View{}, err
		}
		value := map[string]any{"checks": list}
		if workers.Store != nil {
			value["store"] = cli.Message{Message: workers.Store}
		}
		v := cli.View{Value: value, Text: func(t *cli.Table) {
			t.Row("CHECK", "STATE", "DETAIL", "REMEDY")
			for _, h := range list {
				t.Row(h.Check, h.State, h.Detail, h.Remedy)
			}
		}}
		for _, h := range list {
			if h.State == HealthFailing {
				v.Failed = errUnhealthy
			}
		}
		return v, nil
	})
}

// healthCheck is one look. It fails with Unavailable or Unimplemented if the
// service that knows does not run.
type healthCheck struct {
	name string
	look func(*cli.Controller) (HealthResult, error)
}

func healthChecks() []healthCheck {
	return []healthCheck{
		{"processes", healthOfProcesses}, {"store", HealthOfStore}, {"switches", healthOfSwitches}, {"entries", healthOfEntries},
		{"ports", HealthOfPorts}, {"links", healthOfLinks}, {"hosts", HealthOfHosts}, {"broadcast tree", healthOfTree}, {"heartbeats", healthOfHeartbeats},
		{"limits", HealthOfLimits},
	}
}

// CheckHealth looks at everything. It fails if there is no controller to ask.
func CheckHealth(c *cli.Controller) (list []HealthResult, err error) {
	if _, err := c.GetInfo(c.Ctx, &api.GetInfoRequest{}); err != nil {
		return nil, err
	}
	for _, check := range healthChecks() {
		h, err := check.look(c)
		remote := (*cli.RemoteError)(nil)
		switch {
		case err == nil:
		case errors.As(err, &remote) && (remote.Kind == codes.Unavailable || remote.Kind == codes.Unimplemented):
			h = HealthResult{State: HealthWarning, Detail: "not known: " + err.Error()}
		default:
			h = HealthResult{State: HealthFailing, Detail: err.Error()}
		}
		h.Check = check.name
		list = append(list, h)
	}
	return list, nil
}

func healthOfProcesses(c *cli.Controller) (HealthResult, error) {
	m, err := c.ListWorkers(c.Ctx, &api.ListWorkersRequest{})
	var bad, moving []string
	for _, w := range m.GetWorkers() {
		switch w.State {
		case "up":
			for _, s := range w.Services {
				if s.State != "ready" {
					moving = append(moving, fmt.Sprintf("%s in %s is %s", s.Name, w.Process, s.State))
				}
			}
		case "starting", "draining":
			moving = append(moving, fmt.Sprintf("%s is %s", w.Process, w.State))
		default:
			bad = append(bad, strings.TrimSpace(fmt.Sprintf("%s is %s %s", w.Process, w.State, w.LastExit)))
		}
	}
	switch {
	case len(bad) > 0:
		return HealthResult{State: HealthFailing, Detail: cli.FirstFew(bad), Remedy: "weft get workers; the logs of those processes; is weft up running?"}, err
	case len(moving) > 0:
		return HealthResult{State: HealthWarning, Detail: cli.FirstFew(moving), Remedy: "wait a moment and look again"}, err
	case err == nil:
		scaling, err := c.GetScaling(c.Ctx, &api.GetScalingRequest{})
		if err := cli.Unless(err, codes.Unimplemented); err != nil {
			return HealthResult{}, err
		}
		if list := unreachable(scaling.GetWorkers()); len(list) > 0 {
			return HealthResult{State: HealthWarning, Detail: cli.FirstFew(list), Remedy: "raise the target of autoscale in the plan, or its max (weft get scaling)"}, nil
		}
	}
	return HealthResult{State: HealthOK, Detail: fmt.Sprintf("%d, all services ready", len(m.GetWorkers()))}, err
}

// unreachable returns which autoscaled workers reach their target with no number of replicas.
func unreachable(workers []*api.ScaledWorker) (list []string) {
	for _, w := range workers {
		if w.Unreachable != "" {
			list = append(list, fmt.Sprintf("worker %s: %s", w.Worker, w.Unreachable))
		}
	}
	return list
}

// HealthOfStore asks how the durable state is; nothing is written for it.
func HealthOfStore(c *cli.Controller) (HealthResult, error) {
	ctx, cancel := context.WithTimeout(c.Ctx, 5*time.Second)
	defer cancel()
	m, err := c.GetStore(ctx, &api.GetStoreRequest{})
	remote := (*cli.RemoteError)(nil)
	if ctx.Err() != nil && c.Ctx.Err() == nil || errors.As(err, &remote) && remote.Kind == codes.DeadlineExceeded {
		return HealthResult{
			State:  HealthFailing,
			Detail: "it does not answer: the network goes on, but nothing can be changed, and plans cannot be applied",
			Remedy: "the bus is that of weft up PLAN: is it running? start it again, its processes are adopted. With an external NATS, look there",
		}, nil
	}
	var damaged []string
	for _, b := range m.GetBuckets() {
		if b.Damage != "" {
			damaged = append(damaged, b.Name+": "+b.Damage)
		}
	}
	switch {
	case len(damaged) > 0:
		return HealthResult{
			State:  HealthFailing,
			Detail: fmt.Sprintf("%d of %d buckets are damaged, and switches keep all entries: %s", len(damaged), len(m.GetBuckets()), cli.FirstFew(damaged)),
			Remedy: "weft store repair --from BACKUP; or, if what is missing was removed on purpose, weft store repair --accept-loss, and switches lose the entries that nobody wants",
		}, err
	case m.GetTrouble() != "":
		return HealthResult{State: HealthFailing, Detail: "nothing can be written: " + m.GetTrouble(), Remedy: "make room in the data directory; it goes on by itself"}, err
	}
	if err != nil {
		return HealthResult{}, err
	}
	return healthOfServers(c)
}

// healthOfServers looks at the servers that keep the store.
func healthOfServers(c *cli.Controller) (HealthResult, error) {
	m, err := c.ListWorkers(c.Ctx, &api.ListWorkersRequest{})
	st := m.GetStore()
	switch {
	case err != nil || st == nil:
		return HealthResult{State: HealthOK, Detail: "it answers"}, err
	case !st.Quorum:
		return HealthResult{
			State:  HealthFailing,
			Detail: storeLine(st) + ": part of the state cannot be changed now",
			Remedy: "an election takes up to 10 s; if it lasts, start the servers of the NATS cluster that are down",
		}, nil
	case st.Servers < st.Wanted || st.Replicas < st.Wanted:
		return HealthResult{State: HealthWarning, Detail: storeLine(st), Remedy: "start the servers of the NATS cluster that are down; copies are made by themselves"}, nil
	case len(st.Unsynced) > 0:
		return HealthResult{
			State:  HealthWarning,
			Detail: "a power failure loses confirmed state: writes are confirmed before they are on disk at " + cli.FirstFew(st.Unsynced),
			Remedy: "jetstream { sync_interval: always } in the configuration of these NATS servers",
		}, nil
	}
	return HealthResult{State: HealthOK, Detail: storeLine(st)}, nil
}

func healthOfSwitches(c *cli.Controller) (HealthResult, error) {
	m, err := c.ListSwitches(c.Ctx, &api.ListSwitchesRequest{})
	var away, twice, failed, remedies []string
	for _, f := range m.GetFailed() {
		who := cmp.Or(f.Dpid, f.Address, "a peer at a Unix socket")
		failed = append(failed, fmt.Sprintf("%s (%s): %s", who, cli.Several(uint32(f.Times), "time", "times"), f.Reason))
		if f.Remedy != "" && !slices.Contains(remedies, f.Remedy) {
			remedies = append(remedies, f.Remedy)
		}
	}
	for _, s := range m.GetSwitches() {
		if !s.Connected {
			away = append(away, strings.TrimSuffix(s.Dpid+": "+s.Reason, ": "))
		}
		if s.Duplicates > 0 {
			twice = append(twice, s.Dpid)
		}
	}
	switch n := len(m.GetSwitches()); {
	case err == nil && n == 0 && len(failed) > 0:
		return HealthResult{State: HealthFailing, Detail: "none is connected, and the handshakes of those that try fail: " + cli.FirstFew(failed), Remedy: strings.Join(remedies, "; ")}, nil
	case err == nil && n == 0:
		return HealthResult{State: HealthWarning, Detail: "no switch has connected yet", Remedy: "ovs-vsctl set-controller BRIDGE tcp:HOST:6653; see docs/guide/troubleshooting.md"}, nil
	case len(away) > 0:
		return HealthResult{State: HealthFailing, Detail: fmt.Sprintf("%d of %d away: %s%s", len(away), n, cli.FirstFew(away), hostsBehind(c, m.Switches)), Remedy: "is the switch up, and can it reach the controller's address? If they are gone for good: weft switch forget --away"}, err
	case len(twice) > 0:
		return HealthResult{State: HealthWarning, Detail: "others have claimed the datapath id of " + cli.FirstFew(twice), Remedy: "give every bridge its own other-config:datapath-id"}, err
	case len(failed) > 0:
		return HealthResult{State: HealthWarning, Detail: fmt.Sprintf("%d connected; handshakes fail of %s", n, cli.FirstFew(failed)), Remedy: strings.Join(remedies, "; ")}, err
	default:
		return HealthResult{State: HealthOK, Detail: fmt.Sprintf("%d connected", n)}, err
	}
}

func healthOfEntries(c *cli.Controller) (HealthResult, error) {
	m, err := c.ListSync(c.Ctx, &api.ListSyncRequest{})
	var failing, syncing, unknown, which []string
	wanted := uint32(0)
	for _, s := range m.GetSwitches() {
		wanted += s.Wanted
		switch s.State {
		case "failing":
			failing = append(failing, fmt.Sprintf("%s (%d of %d)", s.Dpid, s.Failed, s.Wanted))
			if len(failing) == 1 {
				which = failedEntries(c, s.Dpid, 3)
			}
		case "syncing":
			syncing = append(syncing, s.Dpid)
		}
		if s.Unread != "" {
			unknown = append(unknown, s.Dpid+": "+s.Unread)
		}
	}
	switch {
	case len(failing) > 0:
		return HealthResult{State: HealthFailing, Detail: strings.Join(append([]string{"not in force at " + cli.FirstFew(failing)}, which...), "; "), Remedy: "weft get sync and weft get flows say which and why"}, err
	case len(syncing) > 0:
		return HealthResult{State: HealthWarning, Detail: "not confirmed yet by " + cli.FirstFew(syncing), Remedy: "wait a moment and look again"}, err
	case len(unknown) > 0:
		return HealthResult{
			State:  HealthWarning,
			Detail: "not told by " + cli.FirstFew(unknown),
			Remedy: "the switch is served all the same: the entries that it is to have are written over those that it has; does it answer ovs-ofctl dump-flows?",
		}, err
	}
	return HealthResult{State: HealthOK, Detail: fmt.Sprintf("%d wanted, all confirmed", wanted)}, err
}

// failedEntries names the first entries that a switch has refused or does not keep,
// and says why.
func failedEntries(c *cli.Controller, dpid string, most int) (list []string) {
	m, err := c.ListFlows(c.Ctx, &api.ListFlowsRequest{Dpid: dpid})
	if err != nil {
		return nil // the count says enough
	}
	for _, w := range m.Flows {
		if w.State == "failed" && len(list) < most {
			list = append(list, fmt.Sprintf("%s's entry %s at table %d, priority %d: %s", cmp.Or(w.Flow.Owner, "an"), cli.MatchText(w.Flow.Match), w.Flow.Table, w.Flow.Priority, w.Reason))
		}
	}
	return list
}

// HealthOfPorts looks at the ports that take no traffic.
func HealthOfPorts(c *cli.Controller) (HealthResult, error) {
	idle, known, err := listIdlePorts(c)
	if len(idle) == 0 {
		return HealthResult{State: HealthOK, Detail: fmt.Sprintf("%d ports, none blocked", known)}, err
	}
	causes, first := map[string][]string{}, map[string]*api.PortRole{}
	for _, p := range idle {
		causes[p.Cause] = append(causes[p.Cause], cli.Place(p.At))
		first[p.Cause] = cmp.Or(first[p.Cause], p)
	}
	var details, remedies []string
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		p := first[cause]
		details = append(details, fmt.Sprintf("%s: %s (%s: %s)", cause, cli.FirstFew(causes[cause]), cli.Place(p.At), p.Reason))
		remedies = append(remedies, fmt.Sprintf("%s: %s", cli.Place(p.At), p.Remedy))
	}
	return HealthResult{
		State:  HealthWarning,
		Detail: fmt.Sprintf("%d take no traffic or no link: %s", len(idle), strings.Join(details, "; ")),
		Remedy: strings.Join(remedies, "; ") + "; weft explain port DPID PORT for the others",
	}, err
}

func healthOfLinks(c *cli.Controller) (HealthResult, error) {
	m, err := c.ListLinks(c.Ctx, &api.ListLinksRequest{})
	var down, oneWay, flapping, held []string
	up := map[string]bool{}
	for _, l := range m.GetLinks() {
		switch l.State {
		case "up":
			up[cli.Place(l.Src)+" "+cli.Place(l.Dst)] = true
		case "dampened":
			flapping = append(flapping, fmt.Sprintf("%s to %s (%d times)", cli.Place(l.Src), cli.Place(l.Dst), l.Flaps))
		case "held":
			held = append(held, fmt.Sprintf("%s to %s (%s)", cli.Place(l.Src), cli.Place(l.Dst), l.Reason))
		default:
			down = append(down, fmt.Sprintf("%s to %s (%s)", cli.Place(l.Src), cli.Place(l.Dst), l.State))
		}
	}
	for _, l := range m.GetLinks() {
		if l.State == "up" && !up[cli.Place(l.Dst)+" "+cli.Place(l.Src)] {
			oneWay = append(oneWay, cli.Place(l.Src)+" to "+cli.Place(l.Dst))
		}
	}
	switch {
	case len(held) > 0:
		return HealthResult{State: HealthWarning, Detail: "held, may be relays between hosts: " + cli.FirstFew(held), Remedy: "weft link allow SWITCH:PORT SWITCH:PORT for those that are cables; discovery.latency.max where links are long"}, err
	case len(oneWay) > 0:
		return HealthResult{State: HealthWarning, Detail: "carry frames one way only: " + cli.FirstFew(oneWay), Remedy: "check the cable, or the filter of the far end"}, err
	case len(down) > 0:
		return HealthResult{State: HealthWarning, Detail: fmt.Sprintf("%d not up: %s", len(down), cli.FirstFew(down)), Remedy: "weft get links"}, err
	case len(flapping) > 0:
		return HealthResult{State: HealthWarning, Detail: "go down too often and are the last choice: " + cli.FirstFew(flapping), Remedy: "check the cable and both ports; flap.downs of discovery says how often is too often"}, err
	}
	return HealthResult{State: HealthOK, Detail: fmt.Sprintf("%d up, each direction counted", len(m.GetLinks()))}, err
}

func healthOfTree(c *cli.Controller) (HealthResult, error) {
	m, err := c.GetFlooding(c.Ctx, &api.GetFloodingRequest{})
	if len(m.GetRefused()) > 0 {
		var refused []string
		for _, dpid := range slices.Sorted(maps.Keys(m.Refused)) {
			refused = append(refused, dpid+": "+m.Refused[dpid])
		}
		return HealthResult{
			State:  HealthFailing,
			Detail: fmt.Sprintf("version %d in force, but not where switches refuse it: %s", m.Committed, cli.FirstFew(refused)),
			Remedy: "weft get flows says which entries; make room in the tables of these switches, or take them out of the network; they are asked again every few minutes",
		}, err
	}
	if m.GetCommitted() != m.GetWanted() {
		return HealthResult{State: HealthWarning, Detail: fmt.Sprintf("version %d in force, %d wanted", m.GetCommitted(), m.GetWanted()), Remedy: "wait a moment; if it stays, a switch does not confirm: weft get sync"}, err
	}
	return HealthResult{State: HealthOK, Detail: fmt.Sprintf("version %d in force", m.GetCommitted())}, err
}

func healthOfHeartbeats(c *cli.Controller) (HealthResult, error) {
	m, err := c.ListHeartbeats(c.Ctx, &api.ListHeartbeatsRequest{})
	var late []string
	for _, h := range m.GetSwitches() {
		if h.State == "late" || h.State == "lost" {
			late = append(late, h.Dpid+" is "+h.State)
		}
	}
	if len(late) > 0 {
		return HealthResult{State: HealthFailing, Detail: cli.FirstFew(late), Remedy: "weft get heartbeats; the switch is busy, or its connection is"}, err
	}
	return HealthResult{State: HealthOK, Detail: fmt.Sprintf("%d switches answer, %g beats a second each", len(m.GetSwitches()), m.GetRate())}, err
}

// hostsBehind names the hosts that are known behind switches that are away: Weft
// asks for them everywhere until they are heard elsewhere.
func hostsBehind(c *cli.Controller, switches []*api.Switch) string {
	m, err := c.ListHosts(c.Ctx, &api.ListHostsRequest{})
	if err != nil {
		return "" // health of the hosts is not asked here
	}
	away := map[string]bool{}
	for _, s := range switches {
		away[s.Dpid] = !s.Connected
	}
	var lost []string
	for _, h := range m.Hosts {
		if away[h.GetAt().GetDpid()] {
			lost = append(lost, fmt.Sprintf("%s is known behind %s, which is away", nameOfHost(h), h.At.Dpid))
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return "; " + cli.FirstFew(lost)
}

// HealthOfHosts looks at the hosts whose place somebody else claims.
func HealthOfHosts(c *cli.Controller) (HealthResult, error) {
	m, err := c.ListHosts(c.Ctx, &api.ListHostsRequest{})
	var claimed []string
	for _, h := range m.GetHosts() {
		if h.ClaimedAt != nil {
			claimed = append(claimed, fmt.Sprintf("%s at %s, claimed at %s", nameOfHost(h), cli.Place(h.At), cli.Place(h.ClaimedAt)))
		}
	}
	if len(claimed) == 0 {
		return HealthResult{State: HealthOK, Detail: fmt.Sprintf("%d known", len(m.GetHosts()))}, err
	}
	return HealthResult{
		State:  HealthWarning,
		Detail: fmt.Sprintf("%d of %d are claimed elsewhere, and what comes from there is dropped: %s", len(claimed), len(m.Hosts), cli.FirstFew(claimed)),
		Remedy: "wait for hosts.hold (30 s) if they have moved, as to another lab on the same data directory; else somebody has taken their addresses: weft events --subjects hosts.HostClaimed",
	}, err
}

// nameOfHost returns an address of a host: IPv4, if it has one.
func nameOfHost(h *api.Host) string {
	if len(h.Ipv4) > 0 {
		return h.Ipv4[0]
	}
	return h.Mac
}

// HealthOfLimits names the limits of the configuration that were reached lately,
// whom they have met, and the keys.
func HealthOfLimits(c *cli.Controller) (HealthResult, error) {
	hosts, err := c.ListHosts(c.Ctx, &api.ListHostsRequest{})
	if err != nil {
		return HealthResult{}, err
	}
	flooding, err := c.GetFlooding(c.Ctx, &api.GetFloodingRequest{})
	if err != nil {
		return HealthResult{}, err
	}
	work, err := c.GetWork(c.Ctx, &api.GetWorkRequest{})
	if err := cli.Unless(err, codes.Unimplemented); err != nil {
		return HealthResult{}, err
	}
	reached := append(hosts.GetLimits(), flooding.GetLimits()...)
	for _, p := range work.GetProcesses() {
		reached = append(reached, p.Limits...)
	}
	ports, err := c.ListLimits(c.Ctx, &api.ListLimitsRequest{})
	if err != nil {
		return HealthResult{}, err
	}
	var met, keys []string
	for _, l := range reached {
		met = append(met, fmt.Sprintf("%s (%d) by %s, %d times", l.Key, l.Limit, cmp.Or(l.Who, "all together"), l.Times))
		if !strings.HasPrefix(l.Key, "the ") { // what no key of the configuration sets
			keys = append(keys, l.Key)
		}
	}
	for _, p := range ports.GetLimits() {
		met = append(met, fmt.Sprintf("port %s sends %.0f %s packets per second to the controller, %.0f are let through", cli.Place(&api.Location{Dpid: p.Dpid, Port: p.Port}), p.Offered, p.Class, p.Limit))
		keys = append(keys, "southbound.flood_rate")
	}
	if len(met) == 0 {
		return HealthResult{State: HealthOK, Detail: "none reached in the last ten minutes"}, nil
	}
	remedy := "stop what sends so much"
	if slices.Sort(keys); len(keys) > 0 {
		remedy += ", or raise " + strings.Join(slices.Compact(keys), ", ")
	}
	return HealthResult{State: HealthWarning, Detail: "reached: " + cli.FirstFew(met), Remedy: remedy + " (weft get limits)"}, nil
}
