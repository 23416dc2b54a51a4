package hydra

import (
	"embed"
	"fmt"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan/partition"
	"github.com/weft-sdn/weft/plan/place"
)

// zooFiles are networks of the Internet Topology Zoo (Knight et al. 2011; CC BY
// 4.0, see zoo/README.md): a link a line.
//
//go:embed zoo/*.txt
var zooFiles embed.FS

// zooNames are the networks that there are.
func zooNames() []string { return []string{"internet2", "nordu", "geant"} }

// zooGraph reads a network.
func zooGraph(name string) (*partition.Graph, error) {
	b, err := zooFiles.ReadFile("zoo/" + name + ".txt")
	if err != nil {
		return nil, err
	}
	index := map[string]int{}
	var switches []partition.Switch
	var links []partition.Link
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		ends := strings.Fields(line)
		if len(ends) != 2 {
			return nil, fmt.Errorf("network %s: line %q: want two names", name, line)
		}
		for _, end := range ends {
			if _, there := index[end]; !there {
				index[end] = len(switches)
				switches = append(switches, partition.Switch{DPID: flow.DPID(len(switches) + 1), Name: end, Load: 1})
			}
		}
		links = append(links, partition.Link{A: index[ends[0]], B: index[ends[1]], Weight: 1})
	}
	return partition.New(switches, links)
}

// The network of a zoo instance.
const (
	zooPartitions = 6
	zooServers    = 5
	zooPacketIns  = 1000 // a second, of each switch
)

// zooService is one of the paper's applications, or what carries them: its
// demands are Fig. 5's and Table 1's, for the whole network.
type zooService struct {
	name   string
	cpu    int64 // thousandths, of the whole network
	idle   int64 // thousandths, of each shard
	memory int64 // MiB, of the whole network
	class  place.Class
}

// zooServices are southbound, heartbeats, route lookup, firewall, route
// computation, and a standby of southbound.
func zooServices() []zooService {
	return []zooService{
		{"southbound", 900, 50, 512, place.RealTime},
		{"heartbeat", 180, 10, 64, place.RealTime},
		{"lookup", 2700, 10, 3840, place.Latency},
		{"firewall", 420, 10, 1280, place.Latency},
		{"routes", 1500, 10, 6400, place.Compute},
		{"standby", 90, 30, 512, place.NoClass},
	}
}

// zooInstance makes an instance of a network: six partitions, the shards of the
// services of each, and the traffic between them, which grows with the switches
// of a partition and the links to the others.
func zooInstance(name string, seed uint64, plain bool) (*place.Instance, error) {
	g, err := zooGraph(name)
	if err != nil {
		return nil, err
	}
	cut, err := partition.Partition(g, partition.Options{Partitions: zooPartitions, Method: partition.ByCut, Tolerance: 0.5, Seed: seed})
	if err != nil {
		return nil, err
	}
	services := zooServices()
	in := &place.Instance{}
	switches := int64(len(g.Switches))
	for p, part := range cut.Parts {
		for _, s := range services {
			shard := place.Shard{Name: s.name + "/" + cut.Names[p], Service: s.name, Partition: cut.Names[p], Class: s.class,
				CPU: s.idle + s.cpu*int64(part.Switches)/switches, Memory: (16 + s.memory*int64(part.Switches)/switches) << 20}
			if plain {
				shard.Class = place.NoClass
			}
			in.Shards = append(in.Shards, shard)
		}
	}
	shard := func(p, service int) int { return p*len(services) + service }
	join := func(a, b, weight int) {
		in.Edges = append(in.Edges, place.Edge{A: a, B: b, Weight: float64(weight)})
	}
	for p, part := range cut.Parts {
		n := part.Switches
		join(shard(p, 0), shard(p, 1), 100*n)          // heartbeats
		join(shard(p, 0), shard(p, 3), zooPacketIns*n) // packet-ins
		join(shard(p, 3), shard(p, 2), zooPacketIns*n)
		join(shard(p, 4), shard(p, 2), 1+n/4) // new routes
		join(shard(p, 0), shard(p, 5), 10*n)  // state of the standby
		if plain {
			continue
		}
		in.Apart = append(in.Apart, []int{shard(p, 0), shard(p, 5)})
		in.Paths = append(in.Paths, place.Path{Name: "heartbeats/" + cut.Names[p], Shards: []int{shard(p, 0), shard(p, 1)}, Deadline: 0.5})
	}
	between := map[[2]int]int{}
	for _, l := range g.Links {
		if a, b := cut.Of[l.A], cut.Of[l.B]; a != b {
			between[[2]int{min(a, b), max(a, b)}]++
		}
	}
	for a := range cut.Parts {
		for b := a + 1; b < len(cut.Parts); b++ {
			if n := between[[2]int{a, b}]; n > 0 {
				join(shard(a, 2), shard(b, 2), zooPacketIns/10*n) // lookups of paths through both
				join(shard(a, 4), shard(b, 4), 10*n)              // summaries
			}
		}
	}
	for s := range zooServers {
		in.Servers = append(in.Servers, place.Server{Name: fmt.Sprintf("server%d", s), CPU: 2000, Memory: 4 << 30})
	}
	return in, nil
}
