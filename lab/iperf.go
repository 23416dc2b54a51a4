package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// IperfOptions says how to measure throughput; the zero value is five seconds
// of one TCP stream with CUBIC over IPv4.
type IperfOptions struct {
	IPv6     bool
	Duration time.Duration // whole seconds; 0: 5 s
	Streams  int           // 0: 1
	UDP      Rate          // send UDP at this rate; 0: TCP
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

// Iperf measures the throughput from one host to another with iperf3.
func (l *Lab) Iperf(ctx context.Context, from, to string, opt IperfOptions) (IperfResult, error) {
	r := IperfResult{From: from, To: to, Protocol: "TCP"}
	if err := needTools("iperf3"); err != nil {
		return r, err
	}
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
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds+20)*time.Second)
	defer cancel()
	server, err := l.startIperfServer(ctx, to)
	if err != nil {
		return r, err
	}
	defer func() { cancel(); _ = server.Wait() }()
	args := []string{"iperf3", "-c", addr.String(), "-t", fmt.Sprint(seconds), "-P", fmt.Sprint(max(opt.Streams, 1)),
		"--connect-timeout", "5000", "-J"}
	if opt.UDP > 0 {
		r.Protocol = "UDP"
		args = append(args, "-u", "-b", fmt.Sprint(uint64(opt.UDP)))
	} else {
		args = append(args, "-C", "cubic")
	}
	var out bytes.Buffer
	client := exec.CommandContext(ctx, args[0], args[1:]...)
	client.Stdout = &out
	if err := l.StartCmd(from, client); err != nil {
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
		return r, fmt.Errorf("iperf3 from %s to %s: %w", from, to, errors.Join(werr, err))
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

// startIperfServer starts a server for one measurement and returns once it listens.
func (l *Lab) startIperfServer(ctx context.Context, host string) (*exec.Cmd, error) {
	ready := &signalWriter{want: "listening", seen: make(chan struct{})}
	server := exec.CommandContext(ctx, "iperf3", "-s", "-1", "--forceflush")
	server.Stdout, server.Stderr = ready, ready
	if err := l.StartCmd(host, server); err != nil {
		return nil, err
	}
	select {
	case <-ready.seen:
		return server, nil
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
	_ = server.Process.Kill()
	_ = server.Wait()
	return nil, fmt.Errorf("iperf3 on %s does not listen: %s", host, ready.text.String())
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
