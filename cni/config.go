package cni

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/weft-sdn/weft/internal/document"
)

// Config is the configuration of a network, beside what CNI itself has.
type Config struct {
	types.PluginConf

	// Controllers are where the switches connect, as Open vSwitch writes it, such as
	// tcp:10.0.0.1:6653.
	Controllers []string `json:"controllers"`
	// Bridge is the switch of the node, to which those of the functions have a link. It is
	// made if it is not there.
	Bridge string `json:"bridge,omitempty"`
	// Database is where the database of the node's Open vSwitch is; the default is
	// ovs-vsctl's own.
	Database string `json:"ovsdb,omitempty"`
	// Datapath is the type of the switches' datapath: empty (Open vSwitch's default), system
	// or netdev.
	Datapath string `json:"datapath,omitempty"`
	// Peers are the addresses of the other nodes, to whose switches the node's has links
	// over VXLAN, of the network identifier VNI.
	Peers []string `json:"peers,omitempty"`
	VNI   uint32   `json:"vni,omitempty"`
	// MTU is that of the functions' interfaces.
	MTU int `json:"mtu,omitempty"`

	// RuntimeConfig is what the runtime gives for this container: the capability ips.
	RuntimeConfig struct {
		IPs []string `json:"ips,omitempty"`
	} `json:"runtimeConfig,omitempty"`

	addresses []netip.Prefix
	stdin     []byte
}

// The defaults. Frames between nodes are up to 50 octets longer.
const (
	defaultBridge = "weft0"
	defaultVNI    = 0x5745
	defaultMTU    = 1450
)

// A name of an interface, and where a controller or database is, as Open vSwitch takes them.
// Nothing else goes into a command.
var (
	ifaceName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`)
	controller = regexp.MustCompile(`^(tcp|ssl):(\[[0-9a-fA-F:.]+\]|[0-9.]+)(:[0-9]{1,5})?$`)
	database   = regexp.MustCompile(`^(unix:/[^, ]+|(tcp|ssl):(\[[0-9a-fA-F:.]+\]|[0-9.]+):[0-9]{1,5})$`)
)

// parse reads the configuration that the runtime gives.
func parse(stdin []byte) (*Config, error) {
	c := &Config{Bridge: defaultBridge, VNI: defaultVNI, MTU: defaultMTU, stdin: stdin}
	if err := json.Unmarshal(stdin, c); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "the configuration cannot be read", err.Error())
	}
	if err := c.validate(); err != nil {
		return nil, types.NewError(types.ErrInvalidNetworkConfig, err.Error(), "network "+c.Name)
	}
	return c, nil
}

// parseNew is parse for a network that is to be used from now on: it refuses keys that are
// known ones misspelt. Other unknown keys may be the runtime's, or other plug-ins'; and an
// attachment is removed whatever its configuration says by then.
func parseNew(stdin []byte) (*Config, error) {
	c, err := parse(stdin)
	if err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(stdin, &keys); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "the configuration cannot be read", err.Error())
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		known := slices.ContainsFunc(knownKeys, func(k string) bool { return strings.EqualFold(k, key) }) // as package json takes them
		if meant := document.Meant(key, knownKeys); !known && meant != "" {
			return nil, types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("unknown key %q%s", key, meant), "network "+c.Name)
		}
	}
	return c, nil
}

// knownKeys are the keys of a configuration: the plug-in's, and those of the specification.
var knownKeys = []string{
	"controllers", "bridge", "ovsdb", "datapath", "peers", "vni", "mtu",
	"cniVersion", "cniVersions", "name", "type", "capabilities", "ipam", "dns", "args", "ipMasq", "disableCheck", "disableGC", "loadOnlyInlinedPlugins",
	"plugins", "prevResult", "runtimeConfig",
}

// validate says which key is wrong and what it may be.
func (c *Config) validate() error {
	if len(c.Controllers) == 0 {
		return fmt.Errorf(`controllers: missing: want where Weft listens for switches, such as ["tcp:10.0.0.1:6653"]`)
	}
	for _, s := range c.Controllers {
		if !controller.MatchString(s) {
			return fmt.Errorf("controllers: %q: want tcp:ADDRESS:PORT or ssl:ADDRESS:PORT", s)
		}
	}
	for _, s := range c.Peers {
		if a, err := netip.ParseAddr(s); err != nil || a.Zone() != "" {
			return fmt.Errorf("peers: %q: want the address of a node, such as 10.0.0.2", s)
		}
	}
	switch {
	case !ifaceName.MatchString(c.Bridge):
		return fmt.Errorf("bridge: %q: want the name of a switch of at most 15 letters, digits, '-', '_' and '.'", c.Bridge)
	case c.Database != "" && !database.MatchString(c.Database):
		return fmt.Errorf("ovsdb: %q: want unix:/PATH or tcp:ADDRESS:PORT", c.Database)
	case c.Datapath != "" && c.Datapath != "system" && c.Datapath != "netdev":
		return fmt.Errorf("datapath: %q: want system or netdev", c.Datapath)
	case c.VNI == 0 || c.VNI > 1<<24-1:
		return fmt.Errorf("vni: %d: want 1 to %d", c.VNI, 1<<24-1)
	case c.MTU < 576 || c.MTU > 65535:
		return fmt.Errorf("mtu: %d: want 576 to 65535", c.MTU)
	}
	for _, s := range c.RuntimeConfig.IPs {
		a, err := netip.ParsePrefix(s)
		if err != nil {
			return fmt.Errorf("ips: %q: want an address with the length of its subnet, such as 10.0.0.5/24", s)
		}
		c.addresses = append(c.addresses, a)
	}
	return nil
}

// podName returns what CNI_ARGS says of the container, NAMESPACE/POD under Kubernetes; the
// container's identifier if it says nothing.
func podName(args, container string) string {
	said := map[string]string{}
	for _, pair := range strings.Split(args, ";") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			said[k] = v
		}
	}
	name := container
	if pod := said["K8S_POD_NAME"]; pod != "" {
		name = said["K8S_POD_NAMESPACE"] + "/" + pod
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r) {
			return r
		}
		return '_'
	}, name)
}
