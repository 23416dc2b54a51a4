package qos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/rootpart"
)

// verbQueues asks the part of the controller that is root (package rootpart) to
// bring the queues of a port into a database whose socket belongs to root.
const verbQueues = "bring-queues"

// rightsRequest is a request to it. The part's own configuration says which
// database it is, and which program changes it.
type rightsRequest struct {
	Queues  json.RawMessage `json:"queues"`  // api.QosQueues
	Name    string          `json:"name"`    // of the port
	Address netip.Addr      `json:"address"` // that the switch connects from
}

// Rights returns the verbs by which root brings queues to ports for qos. cfg is
// the configuration that the controller was started with; nil if it is not known,
// and why is the reason.
func Rights(cfg *Config, why string) map[string]rootpart.Verb {
	return map[string]rootpart.Verb{verbQueues: func(ctx context.Context, text json.RawMessage) (any, error) {
		if cfg == nil {
			return nil, errors.New(why)
		}
		var r rightsRequest
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		said := &api.QosQueues{}
		if err := protojson.Unmarshal(r.Queues, said); err != nil {
			return nil, err
		}
		m, err := readQueues(said)
		if err != nil {
			return nil, err
		}
		if said.State == removing {
			m.State = removing
		}
		sw, err := flow.ParseDPID(m.Dpid)
		if err != nil {
			return nil, err
		}
		target, ok := cfg.database(sw, r.Address)
		if !ok {
			return nil, fmt.Errorf("the part of the controller that is root knows no database of switch %s: it takes qos.ovsdb and qos.ovsdb_switches from weft up itself; give them by --config, the plan or --set", m.Dpid)
		}
		return struct{}{}, bring(ctx, vsctlOf(cfg, target), m, r.Name)
	}}
}

// byRoot reports whether only root can reach a database, and the controller has a
// part that is root.
func byRoot(target string) bool {
	path, local := strings.CutPrefix(target, "unix:")
	return local && rootpart.Path() != "" && errors.Is(unix.Access(path, unix.W_OK), os.ErrPermission)
}

// askRoot asks root to bring the queues of a port.
func askRoot(ctx context.Context, m *api.QosQueues, name string, address netip.Addr) error {
	text, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	return rootpart.Ask(ctx, rootpart.Path(), verbQueues, rightsRequest{Queues: text, Name: name, Address: address}, &struct{}{})
}
