package scp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/nf"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/netspace"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/test/measure"
)

// core is a 5G core in which subscribers attach for real, and whose NFs reach
// each other through the switches.
type core struct {
	*site
	seed  uint64
	rates []int
	// each is how long subscribers attach at one rate.
	each time.Duration
}

// The hosts of the core, of which the AMF asks, and the front answers in place of
// the NRF.
const (
	amfHost   = "amf1"
	frontHost = "scp"
)

// paperTypes are the NFs of the paper's simulation.
func paperTypes() []string { return []string{"amf1", "ausf1", "smf1", "nrf", "scp"} }

// openCore starts the core, and waits until the AMF has somebody to ask.
func openCore(ctx context.Context, c *experiments.Context) (experiments.Subject, error) {
	topo, err := topology.Core5G(1)
	if err != nil {
		return nil, err
	}
	topo.Hosts = slices.DeleteFunc(topo.Hosts, func(h topology.Host) bool { return !slices.Contains(paperTypes(), h.Name) })
	nrf, _ := topo.HostByName("nrf")
	nrf.Run[0].Command += " --validity 10s --heartbeat 1h"
	measure.Differs(ctx, "scp-share: weft nf nrf --heartbeat 1h, because the paper counts no heartbeats; no UDM, no PCF")
	front, _ := topo.HostByName(frontHost)
	p, err := everything("scp-share", map[string]map[string]string{"scp": {
		"nrf": fmt.Sprintf("http://%v:%d", nrf.IPv4.Addr(), nfPort), "listen": fmt.Sprintf("\"%v:%d\"", front.IPv4.Addr(), nfPort),
		"namespace": "weft-" + labName("share") + "." + frontHost, "vips": "[10.0.0.192/26]",
	}})
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, "share", p, topo)
	if err != nil {
		return nil, err
	}
	k := &core{site: s, seed: c.Seed, rates: shareRates(), each: realTime(c.Quick)}
	if err := k.warm(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return k, nil
}

// warm waits until subscribers can attach.
func (k *core) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		r, err := k.attach(ctx, 1, 10)
		if err == nil && r.Attachments.Done == 1 && r.Detachments.Done == 1 {
			return nil
		}
		if backoff.Sleep(ctx, 500*time.Millisecond) != nil {
			return k.Failed(fmt.Errorf("no subscriber attaches: %+v, %w", r, cmp.Or(err, ctx.Err())))
		}
	}
}

// attach has the AMF attach subscribers, and detach them at once.
func (k *core) attach(ctx context.Context, count, rate int) (r nf.Report, err error) {
	amf, err := k.lab.Host(amfHost)
	if err != nil {
		return r, err
	}
	at := netip.AddrPortFrom(amf.IPv4.Addr(), nfPort)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return netspace.Dial(ctx, k.lab.HostNetns(amfHost), netip.Addr{}, at)
	}}}
	body := fmt.Sprintf(`{"count": %d, "rate": %d, "stay": "0s"}`, count, rate)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at.String()+"/weft-simulation/v1/attachments", strings.NewReader(body))
	if err != nil {
		return r, err
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(q)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return r, fmt.Errorf("ask the AMF for attachments: %s: %s %w", answer.Status, bytes.TrimSpace(text), err)
	}
	return r, json.Unmarshal(text, &r)
}

// Sample takes one of each rate, in an order of the round's own.
func (k *core) Sample(ctx context.Context, round int) (rows [][]string, err error) {
	order := rand.New(rand.NewPCG(k.seed, uint64(round))).Perm(len(k.rates))
	for _, i := range order {
		rate := k.rates[i]
		before, err := k.count(ctx)
		if err != nil {
			return nil, err
		}
		r, err := k.attach(ctx, int(float64(rate)*k.each.Seconds()), rate)
		if err != nil {
			return nil, k.Failed(err)
		}
		after, err := k.count(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{
			strconv.Itoa(rate), counted(after.through() - before.through()), counted(after.all - before.all), counted(after.front - before.front),
			counted(r.Attachments.Failed + r.Detachments.Failed),
		})
	}
	return rows, nil
}

// counts is how many packets there have been.
type counts struct {
	all   int // sent by hosts
	front int // to and from the controller's front
	ins   int // packet-ins, without those of link discovery
}

// through is how many of them went through the controller.
func (c counts) through() int { return c.front + c.ins }

// count returns how many packets there have been.
func (k *core) count(ctx context.Context) (p counts, err error) {
	for _, name := range paperTypes() {
		text, err := k.lab.Exec(ctx, name, "cat", "/proc/net/snmp", "/proc/net/dev")
		if err != nil {
			return p, err
		}
		in, out, err := parseIP(text)
		if err != nil {
			return p, fmt.Errorf("host %s: %w", name, err)
		}
		p.all += out
		if name == frontHost {
			p.front = in + out
		}
	}
	m, err := k.Metrics(ctx)
	if err != nil {
		return p, err
	}
	p.ins = int(m["weft_southbound_packet_ins_total"] - m["weft_discovery_probes_received_total"])
	return p, nil
}

// parseIP reads how many IPv4 packets a host has received and sent, without those
// to itself, out of /proc/net/snmp and /proc/net/dev.
func parseIP(text string) (in, out int, err error) {
	var names []string
	loopback := -1
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[0] == "Ip:" && names == nil:
			names = f
		case len(f) > 2 && f[0] == "Ip:":
			for i, name := range names {
				switch v, _ := strconv.Atoi(f[i]); name {
				case "InReceives":
					in = v
				case "OutRequests":
					out = v
				}
			}
		case len(f) > 2 && f[0] == "lo:":
			loopback, err = strconv.Atoi(f[2])
		}
	}
	if err != nil || in == 0 || out == 0 || loopback < 0 {
		return 0, 0, fmt.Errorf("unexpected counts of packets: %q", text)
	}
	return in - loopback, out - loopback, nil
}
