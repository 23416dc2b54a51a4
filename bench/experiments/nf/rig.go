package nf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/bench/nf/ids"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/plan/size"
	"github.com/weft-sdn/weft/test/measure"
)

// The parameters of the paper.
const (
	paperRules = 200
	paperRate  = 970.0 // packets a second
	paperIdle  = 0.248 // ms
	paperLoad  = 0.58  // λT of one instance, with the T that Fig. 7 gives
	flows      = 1024  // a power of two, so that copies have equal shares
)

// Ports of the switch.
const (
	inPort, outPort = 1, 2
	firstPort       = 100 // of the first function's eth0; its eth1 is the next one
)

// rig is what samples are taken with. Each has a lab of its own, of as many functions as it
// needs: Open vSwitch looks at all ports of a switch for each packet.
type rig struct {
	weft  string
	dir   string // of rules and alerts
	texts []string
	words float64 // in a packet, so that it is idle as in the paper
	rate  float64
}

// functionHost is the ith function's host.
func functionHost(i int) string { return fmt.Sprintf("f%d", i+1) }

// ownCPUs returns the CPUs of functions with one each, the busy first CPU last.
func ownCPUs() (list []int) {
	for n := min(runtime.NumCPU(), slices.Max(size.PaperCounts())) - 1; n >= 0; n-- {
		list = append(list, n)
	}
	return list
}

func portOf(i int) uint16 { return firstPort + 2*uint16(i) }

// topology is a switch with a source, a sink, and n functions between two of its ports. The source,
// the sink and Open vSwitch are on the first CPU.
func (d deployed) topology(n int) *topology.Topology {
	t := &topology.Topology{Name: "nf", Controllers: []string{topology.ControllerNone}, Switches: []topology.Switch{{Name: "s1"}}, Hosts: []topology.Host{
		{Name: "in", Switch: "s1", Port: inPort, CPUs: []int{0}}, {Name: "out", Switch: "s1", Port: outPort, CPUs: []int{0}},
	}}
	cpus := ownCPUs()
	for i := range n {
		cpu := cpus[0]
		if d.own {
			cpu = cpus[i]
		}
		p := portOf(i)
		t.Hosts = append(t.Hosts, topology.Host{Name: functionHost(i), Switch: "s1", Port: p, Eth1: &topology.Attachment{Switch: "s1", Port: p + 1},
			IPv4: topology.NoIPv4(), IPv6: topology.NoIPv6(), CPUs: []int{cpu}})
	}
	t.Complete()
	return t
}

// up brings the lab of a sample up, and returns it with the process of its Open vSwitch.
func (b *rig) up(ctx context.Context, d deployed, n int) (l *lab.Lab, switchd int, err error) {
	l, err = lab.Up(ctx, d.topology(n), lab.Options{Temporary: true, Name: fmt.Sprintf("exp-%d-nf", os.Getpid()), Weft: b.weft, KeeperCommand: []string{b.weft, "lab", "keeper"}})
	if err != nil {
		return nil, 0, err
	}
	text, err := os.ReadFile(filepath.Join(l.Dir(), "ovs-vswitchd.pid"))
	if err == nil {
		switchd, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err == nil {
		err = onFirstCPU(switchd)
	}
	if err == nil {
		err = steer(ctx, l, d, n)
	}
	if err != nil {
		return nil, 0, errors.Join(err, l.Down(context.Background()))
	}
	return l, switchd, nil
}

// openRig writes rules and finds out how many alerts make a packet idle as long as in the
// paper on this machine's disk.
func openRig(ctx context.Context) (b *rig, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the lab makes network namespaces and so needs root; try sudo")
	}
	b = &rig{words: 1, rate: paperRate}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.weft, err = companion.Find("weft"); err != nil {
		return b, err
	}
	if b.dir, err = os.MkdirTemp("", "weft-experiment-"); err != nil {
		return b, err
	}
	if err = os.WriteFile(b.rules(), []byte(ids.Example(paperRules)), 0o644); err != nil {
		return b, err
	}
	rules, err := ids.ParseRules(b.rules(), ids.Example(paperRules))
	if err != nil {
		return b, err
	}
	for i := range rules {
		if rules[i].Kind == ids.Content {
			b.texts = append(b.texts, rules[i].Text())
		}
	}
	measure.Differs(ctx, "Open vSwitch, source and sink on the first CPU")
	return b, b.calibrate(ctx)
}

func (b *rig) rules() string { return filepath.Join(b.dir, "rules") }

// onFirstCPU has all threads of a process use the first CPU alone.
func onFirstCPU(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return err
	}
	var first unix.CPUSet
	first.Set(0)
	for _, thread := range threads {
		tid, err := strconv.Atoi(filepath.Base(thread))
		if err == nil {
			err = unix.SchedSetaffinity(tid, &first)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("have Open vSwitch on the first CPU: %w", err)
		}
	}
	return nil
}

// calibrate sets how many words packets have and how many packets come.
func (b *rig) calibrate(ctx context.Context) error {
	_, r, err := b.run(ctx, deployed{as: copies}, 1, stream{rate: paperRate / 4, time: 2 * time.Second, seed: 1})
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	if r.idle <= 0 {
		return errors.New("calibrate: alerts cost no time: the directory for temporary files is not on a disk; set TMPDIR")
	}
	each := r.idle / r.alerts              // for an alert
	b.words += (paperIdle - r.idle) / each // alerts by other rules are there, too
	b.words = min(max(b.words, 0.01), 20)
	alert := r.service - r.alerts*r.alert // what is no alert
	service := alert + (r.alerts+b.words-1)*r.alert
	b.rate = min(paperRate, paperLoad/service*1e3)
	return nil
}

// Close removes the files.
func (b *rig) Close() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}

// steer has the switch send packets through n functions and back. What is not IP goes past them.
func steer(ctx context.Context, l *lab.Lab, d deployed, n int) error {
	add := func(priority int, match string, out uint16) string {
		return fmt.Sprintf("priority=%d,%s,actions=output:%d", priority, match, out)
	}
	entries := []string{add(flow.PriorityOperator, fmt.Sprintf("arp,in_port=%d", inPort), outPort), add(flow.PriorityOperator, fmt.Sprintf("arp,in_port=%d", outPort), inPort)}
	for i := range n {
		p := portOf(i)
		to := uint16(outPort)
		switch {
		case d.as == copies: // by the low bits of the source port
			match := fmt.Sprintf("udp,in_port=%d", inPort)
			if n > 1 {
				match += fmt.Sprintf(",udp_src=%d/%d", i, n-1)
			}
			entries = append(entries, add(flow.PriorityOperator, match, p))
		case i == 0:
			entries = append(entries, add(flow.PriorityOperator, fmt.Sprintf("udp,in_port=%d", inPort), p))
		}
		if d.as != copies && i < n-1 {
			to = portOf(i + 1)
		}
		entries = append(entries, add(flow.PriorityOperator, fmt.Sprintf("udp,in_port=%d", p+1), to))
	}
	for _, e := range entries {
		if _, err := l.OfCtl(ctx, "s1", "add-flow", e); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
	}
	return nil
}

// stream is what a sample is taken with.
type stream struct {
	rate float64
	time time.Duration
	seed uint64
}

// parts are what n functions report together, times in ms for a packet.
type parts struct {
	service, scv           float64 // of an instance
	idle, work             float64 // of all that a packet passes
	alerts, alert          float64 // for a packet; a write
	voluntary, involuntary float64 // switches of contexts, for a packet
	dropped                uint64
	switching              float64 // processor time of Open vSwitch
}

// run sends packets through n functions.
func (b *rig) run(ctx context.Context, d deployed, n int, t stream) (r traffic.Result, p parts, err error) {
	l, switchd, err := b.up(ctx, d, n)
	if err != nil {
		return r, p, err
	}
	defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(ctx))) }()
	reports, err := b.during(ctx, l, d, n, func() error {
		before, err := cputime.Of(switchd)
		if err != nil {
			return err
		}
		r, err = l.Traffic(ctx, "in", "out", traffic.Options{Rate: t.rate, Duration: t.time, Seed: t.seed, Flows: flows, Words: b.texts, MeanWords: b.words})
		if err != nil {
			return err
		}
		after, err := cputime.Of(switchd)
		p.switching = (after - before).Seconds() * 1e3 / float64(max(r.Sent, 1))
		return err
	})
	if err != nil {
		return r, p, err
	}
	p.sum(reports, r.Sent)
	if r.Loss > 0.01 {
		return r, p, fmt.Errorf("%d of %d packets were lost", r.Sent-r.Received, r.Sent)
	}
	return r, p, nil
}

// sum adds up what functions report.
func (p *parts) sum(reports []ids.Report, packets int) {
	total := 0.0
	for _, r := range reports {
		n := float64(r.Packets)
		total += n
		p.service += n * r.Service
		p.scv += n * r.ServiceSCV
		p.idle += n * r.Idle
		p.work += n * r.CPU
		p.alerts += float64(r.Alerts)
		p.alert += float64(r.Alerts) * r.Alert
		p.voluntary += n * r.Switches.Voluntary
		p.involuntary += n * r.Switches.Involuntary
		p.dropped += r.Dropped
	}
	if p.alerts > 0 {
		p.alert /= p.alerts
	}
	p.service /= total
	p.scv /= total
	for _, v := range []*float64{&p.idle, &p.work, &p.alerts, &p.voluntary, &p.involuntary} {
		*v /= float64(max(packets, 1))
	}
}

// during runs n functions while f runs.
func (b *rig) during(ctx context.Context, l *lab.Lab, d deployed, n int, f func() error) (reports []ids.Report, err error) {
	var running []*process
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.end())
		}
		for _, p := range running {
			var r ids.Report
			if err == nil {
				err = json.Unmarshal(p.out.Bytes(), &r)
			}
			reports = append(reports, r)
		}
	}()
	for i := range n {
		args := []string{"nf", "ids", "eth0", "eth1", "--rules", b.rules(), "--alerts", filepath.Join(b.dir, functionHost(i)), "--sync", "--one-by-one"}
		switch d.as {
		case chain:
			args = append(args, "--share", fmt.Sprintf("%d/%d", i+1, n))
		case functions:
			args = append(args, "--only", string(ids.Kinds()[i]))
		}
		p := &process{cmd: exec.Command(b.weft, args...), ready: make(chan struct{})}
		p.cmd.Stdout, p.cmd.Stderr = &p.out, p
		if err := l.StartCmd(functionHost(i), p.cmd); err != nil {
			return nil, err
		}
		running = append(running, p)
	}
	for _, p := range running {
		select {
		case <-p.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Second):
			return nil, fmt.Errorf("%s does not begin: %s", p.cmd, p.errors())
		}
	}
	return nil, f()
}

// process is a function that runs.
type process struct {
	cmd   *exec.Cmd
	out   bytes.Buffer
	ready chan struct{} // closed when it stands between its interfaces

	mu  sync.Mutex // guards err
	err bytes.Buffer
}

// Write takes what it says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := bytes.Contains(p.err.Bytes(), []byte(ids.Stands))
	p.err.Write(b)
	if !was && bytes.Contains(p.err.Bytes(), []byte(ids.Stands)) {
		close(p.ready)
	}
	return len(b), nil
}

func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.String()
}

// end interrupts it and waits for its end.
func (p *process) end() error {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.cmd, err, p.errors())
	}
	return nil
}
