package scp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/netspace"
)

// fault is something that fails, or that somebody does.
type fault struct {
	name string
	// fails: requests may fail meanwhile, and moves: pairs may get another producer,
	// for theirs is what fails.
	fails, moves bool
	// strike makes it happen to the bed, whose consumer has the producer; check, if
	// any, says what is wrong while it lasts; mend, if any, ends it.
	strike, check, mend func(ctx context.Context, b *faultBed, x *faultyProducer) error
}

// faults is all of them, in the order in which they are tried.
func faults() []fault {
	type do = func(context.Context, *faultBed, *faultyProducer) error
	nrf := func(m nrfMode) do {
		return func(_ context.Context, b *faultBed, _ *faultyProducer) error { b.nrf.become(m); return nil }
	}
	// unknown asks when the NRF is to be asked again.
	unknown := func(ctx context.Context, b *faultBed, _ *faultyProducer) error {
		time.Sleep(1100 * time.Millisecond) // what is known is not valid any more
		return b.answered(ctx, "")
	}
	return []fault{
		{name: "1 MiB headers", strike: hugeHeaders},
		{name: "HTTP/2 frames cut", strike: cutFrames},
		{name: "half-open connections", strike: halfOpen},
		{name: "JSON bombs", strike: bombs},
		{name: "empty nfServiceList", strike: emptyServices},
		{name: "unknown query parameters", strike: func(ctx context.Context, b *faultBed, _ *faultyProducer) error {
			return b.answered(ctx, "&requester-features=0&max-payload-size=1&preferred-nothing=1")
		}},
		{name: "nfInstanceId of another", strike: another},
		{name: "producers' own addresses", strike: ownAddresses},
		{name: "NRF answering nonsense", strike: nrf(nonsense), check: unknown, mend: nrf(answers)},
		{name: "NRF silent", strike: nrf(silent), check: unknown, mend: nrf(answers)},
		{name: "NRF restarted", strike: func(_ context.Context, b *faultBed, _ *faultyProducer) error {
			b.nrf.stop()
			return b.nrf.start()
		}, check: unknown},
		{name: "VIP moved under load", moves: true, strike: drain(false), check: served, mend: drain(true)},
		{name: "heartbeat late by a margin", moves: true, strike: func(_ context.Context, _ *faultBed, x *faultyProducer) error {
			x.silent.Store(true)
			return nil
		}, check: late, mend: func(_ context.Context, _ *faultBed, x *faultyProducer) error {
			x.silent.Store(false)
			return nil
		}},
		{name: "scp worker killed -9", strike: kill("scp")},
		{name: "controller killed -9", strike: kill("")},
		{name: "instance killed", fails: true, moves: true, strike: func(_ context.Context, _ *faultBed, x *faultyProducer) error {
			x.close()
			return nil
		}, check: served, mend: func(_ context.Context, _ *faultBed, x *faultyProducer) error { return x.listen() }},
		{name: "an instance that moves", fails: true, moves: true, strike: moveAway, check: func(ctx context.Context, b *faultBed, x *faultyProducer) error {
			return b.until(ctx, "the producer is at its new place, and serves", func() bool {
				status, _, err := b.ask(ctx, strangerHost, x.address(), http.MethodGet, "/nbsf-management/v1/x", "")
				return err == nil && status == http.StatusOK
			})
		}, mend: moveBack},
	}
}

// until waits for something.
func (b *faultBed) until(ctx context.Context, what string, is func() bool) error {
	for end := time.Now().Add(15 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("not within 15 s: %s", what)
		}
	}
	return nil
}

// answered returns what is wrong with the answer of a discovery.
func (b *faultBed) answered(ctx context.Context, more string) error {
	at, err := b.discover(ctx, otherHost, more)
	if err == nil && at != b.vip {
		err = fmt.Errorf("discovery answers %v, not %v", at, b.vip)
	}
	return err
}

// serves returns the instance that answers a host at the end point.
func (b *faultBed) serves(ctx context.Context, host string) (string, error) {
	status, text, err := b.ask(ctx, host, b.vip, http.MethodGet, "/nbsf-management/v1/x", "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the end point: status %d: %.200s", status, text)
	}
	return string(text), err
}

// served waits until the consumer has another producer.
func served(ctx context.Context, b *faultBed, x *faultyProducer) error {
	last := "it was not asked"
	err := b.until(ctx, "the consumer has another producer", func() bool {
		id, err := b.serves(ctx, consumerHost)
		last = fmt.Sprintf("%s answers %.80q, %v", b.vip, id, err)
		return err == nil && id != x.id
	})
	if err != nil {
		err = fmt.Errorf("%w: %s; %s", err, last, b.vips(ctx))
	}
	return err
}

// late waits until the producer is late, and gets no new consumers.
func late(ctx context.Context, b *faultBed, x *faultyProducer) error {
	err := b.until(ctx, "the producer is late", func() bool {
		list, err := b.show(ctx)
		return err == nil && slices.ContainsFunc(list.Producers, func(p *api.ScpProducer) bool { return p.Instance == x.id && p.State == "late" })
	})
	if err != nil {
		return err
	}
	return served(ctx, b, x)
}

// kill kills the processes with a service, or all, and waits until they are gone.
func kill(service string) func(context.Context, *faultBed, *faultyProducer) error {
	return func(ctx context.Context, b *faultBed, _ *faultyProducer) error {
		list, err := b.Workers(ctx)
		if err != nil {
			return err
		}
		var gone []int
		for _, w := range list {
			if (service == "" || slices.Contains(w.Services, service)) && w.PID != b.PID() {
				gone = append(gone, w.PID)
			}
		}
		if len(gone) == 0 {
			return fmt.Errorf("no process has %q", service)
		}
		for _, pid := range gone {
			err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
		}
		for _, pid := range gone {
			for err == nil && ctx.Err() == nil && syscall.Kill(pid, 0) == nil {
				time.Sleep(time.Millisecond)
			}
		}
		return err
	}
}

// drain drains the producer, or undoes that.
func drain(undo bool) func(context.Context, *faultBed, *faultyProducer) error {
	return func(ctx context.Context, b *faultBed, x *faultyProducer) error {
		conn, err := b.Northbound()
		if err != nil {
			return err
		}
		_, err = api.NewScpClient(conn).DrainProducer(ctx, &api.DrainProducerRequest{Instance: x.id, Undo: undo})
		return err
	}
}

// dials has the stranger open connections to the NRF's address, and send something
// by each.
func (b *faultBed) dials(ctx context.Context, n int, text string) (list []net.Conn, err error) {
	for range n {
		c, err := netspace.Dial(ctx, b.lab.HostNetns(strangerHost), netip.Addr{}, nrfAt)
		if err != nil {
			return list, err
		}
		list = append(list, c)
		if _, err := c.Write([]byte(text)); err != nil {
			return list, err
		}
	}
	return list, nil
}

// preface is how a client begins HTTP/2: with a frame of no settings.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

func halfOpen(ctx context.Context, b *faultBed, _ *faultyProducer) error {
	quiet, err := b.dials(ctx, 60, "")
	defer func() {
		for _, c := range quiet {
			c.Close()
		}
	}()
	if err != nil {
		return err
	}
	half, err := b.dials(ctx, 60, preface[:20])
	defer func() {
		for _, c := range half {
			c.Close()
		}
	}()
	return errors.Join(err, b.answered(ctx, ""))
}

func cutFrames(ctx context.Context, b *faultBed, _ *faultyProducer) error {
	for _, text := range []string{
		preface + "\x00\x40\x00\x01\x04\x00\x00\x00\x01cut",              // of 16 KiB of headers, three octets
		preface + "\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00",             // a window that ends early
		preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01",                 // 16 MiB of data of no stream
		preface + "\x00\x00\x05\x09\x04\x00\x00\x00\x01\x00\x00\x00\x00", // the rest of headers that nobody began
	} {
		list, err := b.dials(ctx, 10, text)
		for _, c := range list {
			c.Close()
		}
		if err != nil {
			return err
		}
	}
	return b.answered(ctx, "")
}

// refused has a request of the stranger refused with one of some statuses, or its
// connection ended.
func (b *faultBed) refused(ctx context.Context, method, path, body string, statuses []int, header ...string) error {
	status, text, err := b.ask(ctx, strangerHost, nrfAt, method, path, body, header...)
	if err == nil && !slices.Contains(statuses, status) {
		return fmt.Errorf("%s %s: status %d: %.200s; want one of %d", method, path, status, text, statuses)
	}
	return nil
}

func hugeHeaders(ctx context.Context, b *faultBed, _ *faultyProducer) error {
	for range 3 {
		if err := b.refused(ctx, http.MethodGet, "/nnrf-disc/v1/nf-instances?target-nf-type=BSF&requester-nf-type=PCF", "", []int{431}, "X-Large", strings.Repeat("x", 1<<20)); err != nil {
			return err
		}
	}
	return b.answered(ctx, "")
}

const strangeInstance = "/nnrf-nfm/v1/nf-instances/33333333-3333-4333-8333-333333333333"

func bombs(ctx context.Context, b *faultBed, _ *faultyProducer) error {
	for _, text := range []string{
		strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 100_000), "[" + strings.Repeat("0,", 400_000) + "0]", string(bytes.Repeat([]byte{'"'}, 4<<20)),
	} {
		if err := b.refused(ctx, http.MethodPut, strangeInstance, text, []int{400, 413}, "Content-Type", "application/json"); err != nil {
			return err
		}
	}
	return b.answered(ctx, "")
}

func emptyServices(ctx context.Context, b *faultBed, _ *faultyProducer) error {
	h, _ := b.lab.Host(strangerHost)
	body := fmt.Sprintf(`{"nfInstanceId": "33333333-3333-4333-8333-333333333333", "nfType": "NEF", "nfStatus": "REGISTERED", "ipv4Addresses": [%q], "nfServiceList": {}}`, h.IPv4.Addr())
	status, text, err := b.ask(ctx, strangerHost, nrfAt, http.MethodPut, strangeInstance, body, "Content-Type", "application/json")
	if err != nil || status/100 != 2 {
		return fmt.Errorf("registered with no services: %d %.200s %w", status, text, err)
	}
	defer func() {
		_, _, _ = b.ask(context.WithoutCancel(ctx), strangerHost, nrfAt, http.MethodDelete, strangeInstance, "")
	}()
	status, text, err = b.ask(ctx, otherHost, nrfAt, http.MethodGet, "/nnrf-disc/v1/nf-instances?target-nf-type=NEF&requester-nf-type=PCF", "")
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("discovered with no services: %d %.200s %w", status, text, err)
	}
	return b.answered(ctx, "")
}

func another(ctx context.Context, b *faultBed, x *faultyProducer) error {
	path := "/nnrf-nfm/v1/nf-instances/" + x.id
	return errors.Join(
		b.refused(ctx, http.MethodPut, path, strings.ReplaceAll(x.profile(), x.address().Addr().String(), "10.0.0.5"), []int{403}, "Content-Type", "application/json"),
		b.refused(ctx, http.MethodPatch, path, `[{"op":"replace","path":"/nfStatus","value":"SUSPENDED"}]`, []int{403}, "Content-Type", "application/json-patch+json"),
		b.refused(ctx, http.MethodDelete, path, "", []int{403}), b.answered(ctx, ""))
}

func ownAddresses(ctx context.Context, b *faultBed, _ *faultyProducer) error {
	for _, x := range b.producers {
		status, text, err := b.ask(ctx, consumerHost, x.address(), http.MethodGet, "/nbsf-management/v1/x", "")
		if err != nil || status != http.StatusOK || string(text) != x.id {
			return fmt.Errorf("at the address of %s: %d %.80s %w", x.name, status, text, err)
		}
	}
	conn, err := b.Northbound()
	if err != nil {
		return err
	}
	list, err := api.NewScpClient(conn).ListScpPairs(ctx, &api.ListScpPairsRequest{Type: "BSF"})
	if err != nil {
		return err
	}
	direct := 0
	for _, p := range list.Pairs {
		if p.Direct && p.Consumer == "10.0.0.3" {
			direct++
		}
	}
	if direct != len(b.producers) {
		return fmt.Errorf("%d direct pairs of the consumer are counted, want %d: %v", direct, len(b.producers), list.Pairs)
	}
	return nil
}

// moveAway unplugs the producer's host, and has it appear as the host spare.
func moveAway(ctx context.Context, b *faultBed, x *faultyProducer) error {
	h, err := b.lab.Host(x.name)
	if err != nil {
		return err
	}
	x.close()
	if err := b.lab.LinkDown(ctx, x.name, h.Switch); err != nil {
		return err
	}
	return b.become(ctx, x, "spare", h.Name)
}

// moveBack has it appear where it was.
func moveBack(ctx context.Context, b *faultBed, x *faultyProducer) error {
	h, err := b.lab.Host(x.name)
	if err != nil {
		return err
	}
	x.close()
	return errors.Join(b.dress(ctx, "spare", "spare"), b.lab.LinkUp(ctx, x.name, h.Switch), b.become(ctx, x, x.name, ""))
}

// become has the producer serve in a host, as which is dressed as another.
func (b *faultBed) become(ctx context.Context, x *faultyProducer, host, as string) error {
	if as != "" {
		if err := b.dress(ctx, host, as); err != nil {
			return err
		}
	}
	x.mu.Lock()
	x.host = host
	x.mu.Unlock()
	return x.listen()
}

// dress gives a host the addresses of another.
func (b *faultBed) dress(ctx context.Context, host, as string) (err error) {
	h, err := b.lab.Host(as)
	for _, args := range [][]string{
		{"ip", "link", "set", "eth0", "down"}, {"ip", "addr", "flush", "dev", "eth0"}, {"ip", "link", "set", "eth0", "address", h.MAC.String()},
		{"ip", "addr", "add", h.IPv4.String(), "dev", "eth0"}, {"ip", "link", "set", "eth0", "up"},
	} {
		if err == nil {
			_, err = b.lab.Exec(ctx, host, args...)
		}
	}
	return err
}
