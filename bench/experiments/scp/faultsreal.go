package scp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/lab/topology"
)

// realCore is the core whose functions are Open5GS's, where they are installed.
const realCore = "open5gs"

// realHosts are the hosts of that core: what runs in each, a daemon of Open5GS or a
// simulated function, and at which switch.
var realHosts = []struct {
	name, program, sw, at string
}{
	{nrfHost, "open5gs-nrfd", "s1", "10.0.0.1"}, {frontHost, "", "s1", "10.0.0.2"},
	{"ausf1", "open5gs-ausfd", "s2", "10.0.3.1"}, {"ausf2", "open5gs-ausfd", "s3", "10.0.3.2"},
	{"udm1", "open5gs-udmd", "s2", "10.0.4.1"}, {"udm2", "open5gs-udmd", "s3", "10.0.4.2"},
	{"udr", "weft nf udr --nrf http://10.0.0.1:7777", "s3", "10.0.6.1"}, {"amf", "weft nf amf --nrf http://10.0.0.1:7777", "s2", "10.0.1.1"},
}

// realConfig is the configuration of Open5GS's daemons. Each reads the section with its name.
const realConfig = `global: {max: {ue: 1024}}
nrf:
  serving: [{plmn_id: {mcc: 999, mnc: 70}}]
  sbi:
    server: [{dev: eth0, port: 7777}]
ausf:
  sbi:
    server: [{dev: eth0, port: 7777}]
    client: {nrf: [{uri: "http://10.0.0.1:7777"}]}
udm:
  sbi:
    server: [{dev: eth0, port: 7777}]
    client: {nrf: [{uri: "http://10.0.0.1:7777"}]}
`

// realBed is a core of real functions.
type realBed struct {
	*faultBed
	weft, config string
	ausf         netip.AddrPort // their end point

	mu      sync.Mutex // guards the following
	running map[string]*exec.Cmd
}

// realFault is a fault of a real function.
type realFault struct {
	name   string
	within time.Duration // until authentications succeed again
	fails  bool          // some may fail meanwhile
	strike func(ctx context.Context, b *realBed, udm string) error
	mend   func(ctx context.Context, b *realBed, udm string) error
}

// realFaults is all of them, in the order in which they are tried; udm is the host of the
// UDM that serves.
func realFaults() []realFault {
	return []realFault{
		{name: "UDM killed -9", within: 3 * time.Second, fails: true,
			strike: func(_ context.Context, b *realBed, udm string) error { return b.signal(udm, syscall.SIGKILL) },
			mend:   func(ctx context.Context, b *realBed, udm string) error { return b.begin(ctx, udm) }},
		{name: "UDM hangs", within: 5 * time.Second, fails: true,
			strike: func(_ context.Context, b *realBed, udm string) error { return b.signal(udm, syscall.SIGSTOP) },
			mend:   func(_ context.Context, b *realBed, udm string) error { return b.signal(udm, syscall.SIGCONT) }},
		{name: "UDM drained", within: mark, strike: drainReal(false), mend: drainReal(true)},
		{name: "NRF killed -9", within: mark, strike: func(ctx context.Context, b *realBed, _ string) error {
			return errors.Join(b.signal(nrfHost, syscall.SIGKILL), b.begin(ctx, nrfHost))
		}},
		{name: "controller killed -9", within: mark, strike: func(ctx context.Context, b *realBed, _ string) error { return kill("")(ctx, b.faultBed, nil) }},
	}
}

// drainReal drains the UDM in a host, or undoes that.
func drainReal(undo bool) func(context.Context, *realBed, string) error {
	return func(ctx context.Context, b *realBed, udm string) error {
		conn, err := b.Northbound()
		if err != nil {
			return err
		}
		h, err := b.lab.Host(udm)
		if err != nil {
			return err
		}
		list, err := b.show(ctx)
		if err != nil {
			return err
		}
		for _, p := range list.Producers {
			if strings.HasPrefix(p.Address, h.IPv4.Addr().String()+":") {
				_, err = api.NewScpClient(conn).DrainProducer(ctx, &api.DrainProducerRequest{Instance: p.Instance, Undo: undo})
				return err
			}
		}
		return fmt.Errorf("no producer is at %v", h.IPv4.Addr())
	}
}

// openReal brings the core up.
func openReal(ctx context.Context) (b *realBed, err error) {
	for _, h := range realHosts {
		if program, _, _ := strings.Cut(h.program, " "); strings.HasPrefix(program, "open5gs-") {
			if _, err := exec.LookPath(program); err != nil {
				return nil, fmt.Errorf("--core %s: %s is not in PATH; examples/open5gs says what has to be there", realCore, program)
			}
		}
	}
	b = &realBed{faultBed: &faultBed{plan: realCore}, running: map[string]*exec.Cmd{}}
	if b.weft, err = companion.Find("weft"); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weft-scp-real")
	if err != nil {
		return nil, err
	}
	b.config = filepath.Join(dir, "core.yaml")
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
			b = nil
		}
	}()
	if err = os.WriteFile(b.config, []byte(realConfig), 0o600); err != nil {
		return b, err
	}
	t := &topology.Topology{Switches: []topology.Switch{{Name: "s1"}, {Name: "s2"}, {Name: "s3"}}, Links: []topology.Link{{A: "s1", B: "s2"}, {A: "s2", B: "s3"}}}
	for _, h := range realHosts {
		t.Hosts = append(t.Hosts, topology.Host{Name: h.name, Switch: h.sw, IPv4: netip.PrefixFrom(netip.MustParseAddr(h.at), 16), Manage: h.name == frontHost})
	}
	p, err := everything("scp-real", map[string]map[string]string{"scp": {
		"nrf": "http://10.0.0.1:7777", "listen": `"10.0.0.2:7777"`, "namespace": "weft-" + labName("real") + "." + frontHost, "vips": "[10.0.255.0/24]",
	}})
	if err != nil {
		return b, err
	}
	if b.site, err = openBy(ctx, b.weft, "real", p, t, dir); err != nil {
		return b, err
	}
	if err = b.begin(ctx, nrfHost); err != nil {
		return b, err
	}
	err = b.until(ctx, "the front intercepts", func() bool { // what subscribes before it has producers' own addresses
		list, err := b.show(ctx)
		return err == nil && list.Front == "intercepting" && list.Nrf == "ok"
	})
	for _, h := range realHosts {
		if err == nil && h.program != "" && h.name != nrfHost {
			err = b.begin(ctx, h.name)
		}
	}
	if err != nil {
		return b, err
	}
	return b, b.settle(ctx)
}

// begin starts the function of a host.
func (b *realBed) begin(ctx context.Context, host string) error {
	for _, h := range realHosts {
		if h.name != host {
			continue
		}
		words := strings.Fields(h.program)
		if words[0] == "weft" {
			words[0] = b.weft
		} else {
			words = append(words, "-c", b.config)
		}
		cmd := exec.CommandContext(context.WithoutCancel(ctx), "ip", append([]string{"netns", "exec", b.lab.HostNetns(host)}, words...)...)
		if err := cmd.Start(); err != nil {
			return err
		}
		b.mu.Lock()
		b.running[host] = cmd
		b.mu.Unlock()
	}
	return nil
}

// signal sends a signal to the function of a host. It waits until one that is killed has
// ended.
func (b *realBed) signal(host string, s syscall.Signal) error {
	b.mu.Lock()
	cmd := b.running[host]
	b.mu.Unlock()
	if cmd == nil {
		return fmt.Errorf("nothing runs in %s", host)
	}
	err := cmd.Process.Signal(s)
	if s == syscall.SIGKILL {
		_ = cmd.Wait() // it was killed
		b.mu.Lock()
		delete(b.running, host)
		b.mu.Unlock()
	}
	return err
}

// settle waits until all functions are up, and authentications succeed.
func (b *realBed) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for what := ""; ; {
		list, err := b.show(ctx)
		up, others := map[string]int{}, []string{}
		for _, p := range list.GetProducers() {
			if up[p.Type]++; p.State != "up" {
				others = append(others, fmt.Sprintf("%s at %s is %s: %s", p.Type, p.Address, p.State, p.Reason))
			}
		}
		b.ausf = netip.AddrPort{}
		for _, e := range list.GetEndpoints() {
			if e.Type == "AUSF" {
				b.ausf, _ = netip.ParseAddrPort(e.Address)
			}
		}
		switch {
		case err != nil:
			what = err.Error()
		case up["AUSF"] != 2 || up["UDM"] != 2 || up["UDR"] != 1 || up["AMF"] != 1 || len(others) > 0 || list.Front != "intercepting":
			what = fmt.Sprintf("there are %v; %v; front %s", up, others, list.Front)
		case !b.ausf.IsValid():
			what = "the AUSF have no end point yet"
			_, _, _ = b.ask(ctx, "amf", nrfAt, http.MethodGet, "/nnrf-disc/v1/nf-instances?target-nf-type=AUSF&requester-nf-type=AMF", "")
		default:
			err := b.authenticate(ctx)
			if err == nil {
				return nil
			}
			what = err.Error()
		}
		if backoff.Sleep(ctx, 200*time.Millisecond) != nil {
			return b.Failed(fmt.Errorf("the core is not ready: %s", what))
		}
	}
}

// authenticate has the AMF ask an AUSF for an authentication, which asks a UDM, which asks
// the UDR.
func (b *realBed) authenticate(ctx context.Context) error {
	status, text, err := b.ask(ctx, "amf", b.ausf, http.MethodPost, "/nausf-auth/v1/ue-authentications",
		`{"supiOrSuci": "suci-0-999-70-0000-0-0-0000000001", "servingNetworkName": "5G:mnc070.mcc999.3gppnetwork.org"}`, "Content-Type", "application/json")
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("status %d: %.200s", status, text)
	}
	return err
}

// udm returns the host of the UDM that the AUSF has.
func (b *realBed) udm(ctx context.Context) (string, error) {
	conn, err := b.Northbound()
	if err != nil {
		return "", err
	}
	list, err := api.NewScpClient(conn).ListScpPairs(ctx, &api.ListScpPairsRequest{Type: "UDM"})
	if err != nil {
		return "", err
	}
	for _, pair := range list.Pairs {
		for _, h := range realHosts {
			if !pair.Direct && strings.HasPrefix(pair.Producer, h.at+":") {
				return h.name, nil
			}
		}
	}
	return "", fmt.Errorf("no AUSF reaches a UDM by the end point: %v", list.Pairs)
}

// try has a fault happen under authentications, one every 50 ms after the one before.
func (b *realBed) try(ctx context.Context, f realFault) (o Outcome, err error) {
	o = Outcome{Fault: f.name, Plan: realCore}
	if err := b.settle(ctx); err != nil {
		return o, fmt.Errorf("before %s: %w", f.name, err)
	}
	udm, err := b.udm(ctx)
	if err != nil {
		return o, fmt.Errorf("before %s: %w", f.name, err)
	}
	running, end := context.WithCancel(ctx)
	defer end()
	var work sync.WaitGroup
	var last time.Time // of the requests that failed, when it was sent
	var wrong []string
	work.Go(func() {
		for running.Err() == nil {
			began := time.Now()
			err := b.authenticate(context.WithoutCancel(running))
			if o.Sent++; err != nil {
				o.Failed++
				last = began
			}
			_ = backoff.Sleep(running, 50*time.Millisecond)
		}
	})
	_ = backoff.Sleep(ctx, time.Second)
	if err := f.strike(ctx, b, udm); err != nil {
		wrong = append(wrong, err.Error())
	}
	struck := time.Now()
	if o.Answers = firstOf(ctx, 20*time.Second, b.authenticate); o.Answers == 0 {
		wrong = append(wrong, "authentications do not succeed")
	} else if o.Answers > f.within {
		wrong = append(wrong, fmt.Sprintf("authentications succeed after %.1f s", o.Answers.Seconds()))
	}
	_ = backoff.Sleep(ctx, 5*time.Second)
	end()
	work.Wait()
	if f.mend != nil {
		if err := f.mend(ctx, b, udm); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	switch {
	case o.Failed > 0 && !f.fails:
		wrong = append(wrong, fmt.Sprintf("%d of %d authentications failed", o.Failed, o.Sent))
	case o.Failed > 0 && last.Sub(struck) > f.within:
		wrong = append(wrong, fmt.Sprintf("one failed that was sent %.1f s later", last.Sub(struck).Seconds()))
	}
	o.Wrong = strings.Join(wrong, "; ")
	return o, nil
}

// Sample tries every fault once.
func (b *realBed) Sample(ctx context.Context, _ int) (rows [][]string, err error) {
	for _, f := range realFaults() {
		o, err := b.try(ctx, f)
		if err != nil {
			return nil, err
		}
		rows = append(rows, o.row())
	}
	return rows, nil
}

// Close takes all of it down.
func (b *realBed) Close() error {
	for _, h := range realHosts {
		_ = b.signal(h.name, syscall.SIGKILL) // one that runs
	}
	_ = os.RemoveAll(filepath.Dir(b.config)) // swept else
	return b.faultBed.Close()
}
