package nf

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/sbi"
)

// Config is what an instance of a network function is, other than an NRF.
type Config struct {
	Type     sbi.NFType
	Instance string // its id; empty: one that follows from type and address
	NRF      string // a URI such as http://10.0.0.1:7777
	Listen   string // HOST:PORT
	TLS      TLS
	HTTP1    bool // asks others by HTTP/1.1

	Priority, Capacity int
	Locality           string
	PLMNs              []sbi.PlmnID
	SNSSAIs            []sbi.Snssai
	Allowed            []sbi.NFType // none: all

	Producing Producing
	Consuming Consuming
	// Full adds to the messages of the paper those to UDM and PCF that stand
	// behind them, and callbacks.
	Full bool
	Log  *slog.Logger
}

// Validate says what is wrong.
func (c *Config) Validate() error {
	switch {
	case services[c.Type] == nil:
		return fmt.Errorf("type %q; allowed: AMF, SMF, AUSF, UDM, PCF, UDR", c.Type)
	case c.Instance != "" && !sbi.ValidInstanceID(c.Instance):
		return fmt.Errorf("instance %q: want a UUID", c.Instance)
	case !strings.HasPrefix(c.NRF, "http://") && !strings.HasPrefix(c.NRF, "https://"):
		return fmt.Errorf("NRF %q: want a URI such as http://10.0.0.1:7777", c.NRF)
	case c.Priority < 0 || c.Priority > 65535 || c.Capacity < 0 || c.Capacity > 65535:
		return fmt.Errorf("priority %d, capacity %d: want 0 to 65535", c.Priority, c.Capacity)
	case c.Producing.ServiceTime < 0 || c.Producing.Payload < 0 || c.Producing.Payload > 16<<20:
		return fmt.Errorf("service time %v, payload %d: want no less than 0, and a payload of at most 16777216", c.Producing.ServiceTime, c.Producing.Payload)
	case c.Producing.Workers < 0 || c.Producing.Overload < 0 || c.Producing.Overload > 0 && c.Producing.Workers == 0:
		return fmt.Errorf("workers %d, overload %d: want no less than 0, and workers for an overload", c.Producing.Workers, c.Producing.Overload)
	case c.Producing.Load > 100 || c.Producing.Contexts < 1:
		return fmt.Errorf("load %d, contexts %d: want a load of at most 100, and 1 context or more", c.Producing.Load, c.Producing.Contexts)
	}
	return nil
}

// An Instance is an instance of a network function other than an NRF.
type Instance struct {
	ID       string
	Endpoint *Endpoint

	cfg       Config
	producer  *producer
	consumer  *consumer
	procedure *procedures // of an AMF
}

// Open has an instance listen.
func Open(cfg Config) (*Instance, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	e, err := Listen(cfg.Listen, cfg.TLS, cfg.HTTP1)
	if err != nil {
		return nil, err
	}
	i := &Instance{ID: cfg.Instance, Endpoint: e, cfg: cfg}
	if i.ID == "" {
		i.ID = sbi.InstanceID(string(cfg.Type), e.Addr.String())
	}
	i.consumer = newConsumer(e.Client, strings.TrimSuffix(cfg.NRF, "/"), sbi.Requester{NFType: cfg.Type, InstanceID: i.ID, PLMNs: cfg.PLMNs, SNSSAIs: cfg.SNSSAIs}, cfg.Consuming)
	i.producer = newProducer(cfg.Producing, e.Root())
	if cfg.Type == sbi.AMF {
		i.procedure = newProcedures(i.consumer, e.Root(), cfg.Full)
	}
	if err := i.profile().Check(); err != nil {
		e.Close()
		return nil, err
	}
	return i, nil
}

// Run serves, registers and sends heartbeats until ctx ends, and deregisters then.
func (i *Instance) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { i.keepRegistered(ctx) })
	return i.Endpoint.Serve(ctx, named(string(i.cfg.Type), i.ID, i.handler()))
}

// profile returns what the instance registers.
func (i *Instance) profile() *sbi.NFProfile {
	load := i.producer.load()
	addr, port := i.Endpoint.Addr.Addr(), int(i.Endpoint.Addr.Port())
	p := &sbi.NFProfile{
		NFInstanceID: i.ID, NFInstanceName: Product + "-" + string(i.cfg.Type), NFType: i.cfg.Type, NFStatus: sbi.Registered,
		PLMNList: i.cfg.PLMNs, SNSSAIs: i.cfg.SNSSAIs, AllowedNFTypes: i.cfg.Allowed,
		Priority: &i.cfg.Priority, Capacity: &i.cfg.Capacity, Load: &load, Locality: i.cfg.Locality,
	}
	point := sbi.IPEndPoint{Transport: "TCP", Port: &port}
	if addr.Is4() {
		p.IPv4Addresses, point.IPv4Address = []string{addr.String()}, addr.String()
	} else {
		p.IPv6Addresses, point.IPv6Address = []string{addr.String()}, addr.String()
	}
	for _, s := range services[i.cfg.Type] {
		p.NFServices = append(p.NFServices, sbi.NFService{
			ServiceInstanceID: s.name, ServiceName: s.name, Versions: []sbi.Version{{APIVersionInURI: s.version, APIFullVersion: s.version[1:] + ".0.0"}},
			Scheme: i.Endpoint.Scheme, NFServiceStatus: sbi.Registered, IPEndPoints: []sbi.IPEndPoint{point},
		})
	}
	return p
}

// How long an instance waits for the NRF: between tries, the last for an answer.
const (
	firstTry  = 100 * time.Millisecond
	lastTry   = 2 * time.Second
	nrfAnswer = 3 * time.Second
)

// keepRegistered registers, as often as need be, and sends heartbeats until ctx
// ends, and deregisters then.
func (i *Instance) keepRegistered(ctx context.Context) {
	pauses := backoff.Exponential{First: firstTry, Last: lastTry}
	for {
		beat, err := i.register(ctx)
		if err == nil {
			i.cfg.Log.Info("registered", "type", i.cfg.Type, "instance", i.ID, "at", i.Endpoint.Root(), "heartbeat", beat)
			pauses.Reset()
			i.beat(ctx, beat)
		} else if ctx.Err() == nil {
			i.cfg.Log.Warn("cannot register", "nrf", i.cfg.NRF, "error", err)
		}
		if pauses.Wait(ctx) == nil {
			continue
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if _, err := i.nrf(last, http.MethodDelete, "", nil); err != nil && sbi.ProblemOf(err).Status != http.StatusNotFound {
			i.cfg.Log.Warn("cannot deregister", "nrf", i.cfg.NRF, "error", err)
		}
		return
	}
}

// register registers, and returns how often the NRF wants a heartbeat.
func (i *Instance) register(ctx context.Context) (time.Duration, error) {
	b, err := json.Marshal(i.profile())
	if err != nil {
		return 0, err
	}
	b, err = i.nrf(ctx, http.MethodPut, "application/json", b)
	if err != nil {
		return 0, err
	}
	var p sbi.NFProfile
	if err := json.Unmarshal(b, &p); err != nil {
		return 0, err
	}
	return max(time.Second, time.Duration(p.HeartBeatTimer)*time.Second), nil
}

// beat sends heartbeats until ctx ends or the NRF does not know the instance. One
// that is not answered is soon sent again, for the NRF waits little longer than for
// one.
func (i *Instance) beat(ctx context.Context, every time.Duration) {
	wait := every
	for {
		if backoff.Sleep(ctx, wait) != nil {
			return
		}
		wait = every
		_, err := i.nrf(ctx, http.MethodPatch, "application/json-patch+json", fmt.Appendf(nil,
			`[{"op":"replace","path":"/nfStatus","value":"REGISTERED"},{"op":"replace","path":"/load","value":%d}]`, i.producer.load()))
		switch {
		case err == nil || ctx.Err() != nil:
		case sbi.ProblemOf(err).Status == http.StatusNotFound:
			i.cfg.Log.Warn("the NRF does not know the instance any more; it registers again", "instance", i.ID)
			return
		default:
			i.cfg.Log.Warn("a heartbeat is not answered", "nrf", i.cfg.NRF, "error", err)
			wait = min(every, lastTry)
		}
	}
}

// nrf asks the NRF about the instance's own profile.
func (i *Instance) nrf(ctx context.Context, method, kind string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, nrfAnswer)
	defer cancel()
	a, err := i.consumer.send(ctx, method, i.consumer.nrf+managementPath+"/nf-instances/"+i.ID, kind, body)
	if err != nil {
		return nil, err
	}
	return a.body, a.problem()
}
