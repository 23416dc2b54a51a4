package api

// The calls of the firewall.
var (
	AddFirewallRules    = Method[AddFirewallRulesRequest, AddFirewallRulesResponse]{"firewall.AddFirewallRules"}
	DeleteFirewallRules = Method[DeleteFirewallRulesRequest, DeleteFirewallRulesResponse]{"firewall.DeleteFirewallRules"}
	ListFirewallRules   = Method[ListFirewallRulesRequest, ListFirewallRulesResponse]{"firewall.ListFirewallRules"}
	SetFirewallDefault  = Method[SetFirewallDefaultRequest, SetFirewallDefaultResponse]{"firewall.SetFirewallDefault"}
	GetFirewallStatus   = Method[GetFirewallStatusRequest, FirewallStatus]{"firewall.GetFirewallStatus"}
	CheckFirewall       = Method[CheckFirewallRequest, CheckFirewallResponse]{"firewall.CheckFirewall"}
)
