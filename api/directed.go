package api

// Direction says how a call finds its servers where the called service runs
// once for each of several partitions: which of them are asked, with which part
// of the request, and how their answers become one. All names are those of the
// fields of the protobuf messages; decisions are divided by the switches of
// their operations, in order.
type Direction struct {
	// Switch is the field of the request that names the switch whose partition
	// is asked. If the request leaves it empty, or there is no such field, all
	// are asked.
	Switch string
	// List is a list of the request that is divided: of DPIDs, or of messages
	// whose field dpid names the switch. Each partition gets what is about its
	// switches. If the request leaves it empty, Switch counts.
	List string
	// Answers is the list of the response that has an element for each of List,
	// in the same order; empty if there is none.
	Answers string
	// Error is the field of an element of Answers that says why there is none: for
	// the switches of a partition that does not answer. Without it the call fails.
	Error string
	// Sums are the numbers of the response that are added up; of others, and of
	// texts, the first answer's counts. Numbers in maps are always added up.
	Sums []string
	// Once are the lists of the response that are the same in all answers: the
	// first counts. Other lists are joined, in the order of their elements' dpid.
	Once []string
	// Same is the field by which an element is known in several answers, where
	// it is shown once, its packets and bytes added up; empty if none is.
	Same string
	// Incomplete is the list of the response in which is told which partitions
	// have not answered; without one, the call fails if one does not.
	Incomplete string
}

// Directions returns, by method, how calls of services that may run once for
// each partition are directed. A method that is not listed cannot be called
// from outside its server's partition.
func Directions() map[string]Direction {
	of := Direction{Switch: "dpid"}
	return map[string]Direction{
		ListSwitches.Name:     {Incomplete: "incomplete"},
		ListPorts.Name:        {Switch: "dpid", Incomplete: "incomplete"},
		ListLimits.Name:       {Switch: "dpid", Incomplete: "incomplete"},
		ReadFlows.Name:        of,
		ReadGroups.Name:       of,
		ReadMeters.Name:       of,
		ReadPortStats.Name:    of,
		ReadTableStats.Name:   of,
		ForgetSwitch.Name:     of,
		ReadMultipart.Name:    of,
		ModifyPort.Name:       of,
		SendExperimenter.Name: of,
		Apply.Name:            {}, // a decision
		Send.Name:             {},
		EchoSwitches.Name:     {List: "dpids", Answers: "echoes", Error: "error"},

		ListHeartbeats.Name: {Switch: "dpid", Incomplete: "incomplete"},

		ListPortStats.Name:  of,
		ListTableStats.Name: of,
		ListFlowStats.Name:  of,

		// Paths of a partition find those to others with their help; the tree is
		// that of the whole network.
		FindPath.Name:          {Switch: "src"},
		GetTree.Name:           {Once: []string{"ports"}, Incomplete: "incomplete"},
		ExchangeSummaries.Name: {Incomplete: "incomplete"},

		SetStanding.Name: of,
		Observe.Name:     {List: "dpids"},
		AddFlows.Name:    {List: "flows", Answers: "flows"},
		DeleteFlows.Name: {List: "flows", Switch: "all_of", Sums: []string{"deleted"}},
		ListFlows.Name:   of,
		ListSync.Name:    {},

		// All partitions have the same rules, for a rule is of all switches unless
		// it says otherwise.
		AddFirewallRules.Name:    {Once: []string{"ids"}},
		DeleteFirewallRules.Name: {},
		ListFirewallRules.Name:   {Switch: "dpid", Same: "id"},
		SetFirewallDefault.Name:  {Switch: "dpid"},
		GetFirewallStatus.Name:   {Switch: "dpid", Sums: []string{"allowed", "denied"}},
		CheckFirewall.Name:       of,
	}
}
