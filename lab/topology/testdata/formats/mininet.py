from mininet.topo import Topo
