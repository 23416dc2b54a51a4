package traffic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// IperfOptions says how to measure throughput; the zero value is five seconds
// of one TCP stream with CUBIC over IPv4.
type IperfOptions struct {
	IPv6     bool
	Duration time.Duration // whole seconds; 0: 5 s
	Streams  int           // 0: 1
	UDP      topology.Rate // send UDP at this rate; 0: TCP
}

// IperfResult is a measured throughput.
type IperfResult struct {
	From        string  `json:"from"`
	To          string  `json:"to"`
	Protocol    string  `json:"protocol"`
	Seconds     float64 `json:"seconds"`
	SentMbit    float64 `json:"sent_mbit_s"`
	Mbit        float64 `json:"received_mbit_s"`
	Retransmits int     `json:"retransmits"`  // TCP
	LostPercent float64 `json:"lost_percent"` // UDP
}

// Hosts is a lab whose hosts commands run in, wherever they are.
type Hosts interface {
	Host(name string) (topology.Host, error)
	StartAt(node string, cmd *exec.Cmd) error
}

// Iperf measures the throughput from one host to another with iperf3, which their machines must have.
func Iperf(ctx context.Context, l Hosts, from, to string, opt IperfOptions) (IperfResult, error) {
	r := IperfResult{From: from, To: to, Protocol: "TCP"}
	dst, err := l.Host(to)
	if err != nil {
		return r, err
	}
	if _, err := l.Host(from); err != nil {
		return r, err
	}
	addr, has := dst.IPv4.Addr(), dst.HasIPv4()
	if opt.IPv6 {
		addr, has = dst.IPv6.Addr(), dst.HasIPv6()
	}
	if !has {
		return r, fmt.Errorf("host %s has no address of that family", to)
	}
	seconds := max(1, int(opt.Duration.Seconds()))
	if opt.Duration == 0 {
		seconds = 5
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds+40)*time.Second)
	defer cancel()
	end, err := startIperfServer(ctx, l, to)
	if err != nil {
		return r, err
	}
	defer end()
	args := []string{"iperf3", "-c", addr.String(), "-t", fmt.Sprint(seconds), "-P", fmt.Sprint(max(opt.Streams, 1)),
		"--connect-timeout", "5000", "-J"}
	if opt.UDP > 0 {
		r.Protocol = "UDP"
		args = append(args, "-u", "-b", fmt.Sprint(uint64(opt.UDP)))
	} else {
		args = append(args, "-C", "cubic")
	}
	var out, said bytes.Buffer
	client := exec.CommandContext(ctx, args[0], args[1:]...)
	client.Stdout, client.Stderr, client.WaitDelay = &out, &said, machine.OutputDelay
	if err := l.StartAt(from, client); err != nil {
		return r, err
	}
	werr := client.Wait()
	var report struct {
		Error string
		End   struct {
			Sent     iperfSum `json:"sum_sent"`
			Received iperfSum `json:"sum_received"`
			Sum      iperfSum `json:"sum"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return r, fmt.Errorf("iperf3 from %s to %s: %w: %s", from, to, cmp.Or(werr, err), machine.LastLine(said.String()))
	}
	if report.Error != "" {
		return r, fmt.Errorf("iperf3 from %s to %s: %s", from, to, strings.TrimSpace(report.Error))
	}
	sent, received := report.End.Sent, report.End.Received
	if opt.UDP > 0 {
		received.LostPercent = report.End.Sum.LostPercent
		if sent.Bits == 0 {
			sent.Bits = report.End.Sum.Bits
		}
	}
	r.Seconds, r.SentMbit, r.Mbit = sent.Seconds, sent.Bits/1e6, received.Bits/1e6
	r.Retransmits, r.LostPercent = sent.Retransmits, received.LostPercent
	return r, nil
}

type iperfSum struct {
	Seconds     float64
	Bits        float64 `json:"bits_per_second"`
	Retransmits int
	LostPercent float64 `json:"lost_percent"`
}

// listenTime is how long a server may take to listen, on another machine, too.
const listenTime = 20 * time.Second

// startIperfServer starts a server for one measurement and returns once it listens, with
// what ends it.
func startIperfServer(ctx context.Context, l Hosts, host string) (end func(), err error) {
	ready := &signalWriter{want: "listening", seen: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	server := exec.CommandContext(ctx, "iperf3", "-s", "-1", "--forceflush")
	server.Stdout, server.Stderr, server.WaitDelay = ready, ready, machine.OutputDelay
	if err := l.StartAt(host, server); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // it is killed
	}()
	end = func() { cancel(); <-ended }
	select {
	case <-ready.seen:
		return end, nil
	case <-time.After(listenTime):
	case <-ended:
	}
	end()
	return nil, fmt.Errorf("iperf3 on %s does not listen: %s", host, strings.TrimSpace(ready.text.String()))
}

// signalWriter closes seen once want has been written to it.
type signalWriter struct {
	want string
	seen chan struct{}
	text bytes.Buffer
	done bool
}

func (w *signalWriter) Write(b []byte) (int, error) {
	w.text.Write(b)
	if !w.done && strings.Contains(w.text.String(), w.want) {
		w.done = true
		close(w.seen)
	}
	return len(b), nil
}
