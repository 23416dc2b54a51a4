package nf

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/nf"
	"github.com/weft-sdn/weft/bench/sim/httpload"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/sbi"
)

// instanceFlags are the flags of an instance that are not a Config's.
type instanceFlags struct {
	place
	sequence      string
	plmns, slices []string
	allow         []string
	attach        nf.Attachments // an AMF's
	arrivals      string
	rate          float64
	seed          uint64
}

// long is what instances of each type do.
var long = map[sbi.NFType]string{
	sbi.AMF:  "It attaches and detaches subscribers: at --rate, or when it is asked by POST /weft-simulation/v1/attachments with {\"count\": 100, \"rate\": 10, \"arrivals\": \"poisson\", \"stay\": \"60s\"}, and reports in JSON.",
	sbi.SMF:  "It keeps the sessions that it is asked for and, with --sequence full, asks UDM and PCF for each.",
	sbi.AUSF: "It authenticates anybody and, with --sequence full, asks the UDM first.",
	sbi.UDM:  "It knows every subscriber.",
	sbi.PCF:  "It grants every policy.",
	nf.UDR:   "It has the same authentication data for every subscriber, those of test set 1 of TS 35.208, for a real UDM to ask for. What a UDM changes is not kept.",
}

func instanceCommand(of sbi.NFType) *cobra.Command {
	f := &instanceFlags{}
	cfg := nf.Config{Type: of}
	name := strings.ToLower(string(of))
	cmd := &cobra.Command{
		Use:   name,
		Short: "Run a simulated " + string(of),
		Long: "Run a simulated " + string(of) + `. It registers at the NRF, sends heartbeats with its load, and
deregisters when it is interrupted.

` + wrapped(long[of]),
		Example: "  weft nf " + name + " --nrf http://10.0.0.1:7777\n  weft nf " + name + " --nrf http://10.0.0.1:7777 --capacity 300 --service-time 1ms --payload 300",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, cfg)
		},
	}
	f.place.flags(cmd)
	s := cmd.Flags()
	s.StringVar(&cfg.NRF, "nrf", "", "where the NRF is, such as http://10.0.0.1:7777")
	_ = cmd.MarkFlagRequired("nrf") // the flag is there
	s.StringVar(&cfg.Instance, "instance", "", "UUID of the instance (default: one that follows from type and address)")
	s.IntVar(&cfg.Priority, "priority", 0, "0 to 65535, the lowest is preferred")
	s.IntVar(&cfg.Capacity, "capacity", sbi.DefaultCapacity, "0 to 65535, relative to others of the same priority")
	s.StringVar(&cfg.Locality, "locality", "", "where it is")
	s.StringSliceVar(&f.plmns, "plmn", nil, "a network that it serves, MCC-MNC (default: that of the NRF); may be repeated")
	s.StringSliceVar(&f.slices, "slice", nil, "a slice that it serves, SST or SST-SD (default: all); may be repeated")
	s.StringSliceVar(&f.allow, "allow", nil, "types that may use it (default: all)")
	s.StringVar(&f.sequence, "sequence", "paper", "messages of an attachment: paper, those that the SDN-SCP paper counts, or full, with UDM, PCF and callbacks")
	p := &cfg.Producing
	s.DurationVar(&p.ServiceTime, "service-time", 0, "time that a request takes")
	s.IntVar(&p.Payload, "payload", 300, "octets of an answer")
	s.IntVar(&p.Workers, "workers", 0, "requests that are served at once, others wait; 0: all")
	s.IntVar(&p.Overload, "overload", 0, "requests that may wait for workers; others get 503 and Retry-After; 0: any number")
	s.IntVar(&p.Load, "load", -1, "load that heartbeats say, in percent; less than 0: what the workers had to do")
	s.IntVar(&p.Contexts, "contexts", 100_000, "most contexts that it keeps")
	c := &cfg.Consuming
	s.BoolVar(&c.Forever, "forever", false, "never ask the NRF again after the first discovery")
	s.BoolVar(&c.CheckInstance, "check-instance", false, "ask the NRF for the instance that made a context, and refuse answers of another")
	s.BoolVar(&c.IgnoreLocation, "ignore-location", false, "send what follows a request where that was sent, not to the address in its answer's Location")
	if of == sbi.AMF {
		s.Float64Var(&f.rate, "rate", 0, "attachments a second; 0: only those that it is asked for")
		s.StringVar(&f.arrivals, "arrivals", "constant", "constant or poisson")
		s.Uint64Var(&f.seed, "seed", 1, "of poisson arrivals")
		s.IntVar(&f.attach.Count, "count", 0, "end after so many attachments; 0: when interrupted")
		s.DurationVar(&f.attach.Stay, "stay", time.Minute, "time for which a subscriber is attached")
	}
	return cmd
}

// wrapped breaks a text into lines as the rest of the help has them.
func wrapped(text string) string {
	var lines strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		if n > 0 && n+len(word) >= 80 {
			lines.WriteByte('\n')
			n = 0
		} else if n > 0 {
			lines.WriteByte(' ')
		}
		lines.WriteString(word)
		n += len(word) + 1
	}
	return lines.String()
}

// run runs an instance.
func (f *instanceFlags) run(cmd *cobra.Command, cfg nf.Config) error {
	err := f.complete(&cfg)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return cli.Usagef(cmd, "%w", err)
	}
	if err := f.resolve(cmd); err != nil {
		return err
	}
	cfg.Listen, cfg.TLS, cfg.HTTP1, cfg.Log = f.listen, f.tls, f.http1, logger(cmd)
	ctx, stop := cli.Signals(cmd)
	defer stop()
	i, err := nf.Open(cfg)
	if err != nil {
		return err
	}
	if f.rate == 0 {
		return i.Run(ctx)
	}
	return await(ctx, i.Run, func(ctx context.Context) error {
		if i.Await(ctx) != nil {
			return nil // interrupted
		}
		report, err := i.Attach(ctx, f.attach)
		if err != nil {
			return err
		}
		b, err := cli.ToJSON(report)
		if err == nil {
			_, err = cmd.OutOrStdout().Write(b)
		}
		return err
	})
}

// complete puts into a configuration what flags say in words.
func (f *instanceFlags) complete(cfg *nf.Config) (err error) {
	switch f.sequence {
	case "paper", "full":
		cfg.Full = f.sequence == "full"
	default:
		return fmt.Errorf("sequence %q; allowed: paper, full", f.sequence)
	}
	for _, text := range f.plmns {
		mcc, mnc, _ := strings.Cut(text, "-")
		cfg.PLMNs = append(cfg.PLMNs, sbi.PlmnID{MCC: mcc, MNC: mnc})
	}
	for _, text := range f.slices {
		sst, sd, _ := strings.Cut(text, "-")
		n, err := strconv.ParseUint(sst, 10, 8)
		if err != nil {
			return fmt.Errorf("slice %q: want SST or SST-SD, such as 1-000001", text)
		}
		cfg.SNSSAIs = append(cfg.SNSSAIs, sbi.Snssai{SST: uint8(n), SD: sd})
	}
	for _, text := range f.allow {
		cfg.Allowed = append(cfg.Allowed, sbi.NFType(strings.ToUpper(text)))
	}
	if cfg.Type != sbi.AMF {
		return nil
	}
	if f.rate < 0 || f.attach.Stay < 0 || f.attach.Count < 0 {
		return fmt.Errorf("rate %v, stay %v, count %d: want no less than 0", f.rate, f.attach.Stay, f.attach.Count)
	}
	f.attach.Arrivals, err = httpload.ParseArrivals(f.arrivals, f.rate, f.seed)
	return err
}
