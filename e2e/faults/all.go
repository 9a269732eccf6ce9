package faults

// all are the faults, in the order of the table.
var all = []fault{
	{"engine: kill -9 amid requests", 1, 10, engineKilled},
	{"engine: SIGTERM or SIGINT, idle", 1, 5, engineSignalledIdle},
	{"engine: SIGTERM or SIGINT amid requests", 1, 5, engineSignalled},
	{"engine: SIGSTOP amid requests", 1, 3, engineStopped},
	{"engine: slow, with hardly any processor time", 0, 2, engineStarved},
	{"engine: its file is gone, without its mode, or a script that exits", 1, 6, engineSpoilt},
	{"engine: the model's file is cut short or removed", 1, 4, modelSpoilt},
	{"server: kill -9 amid stored chats", 1, 10, serverKilled},
	{"server: SIGTERM amid streams", 1, 8, serverStopped},
	{"server: two starts at once", 3, 20, twoStarts},
	{"server: reloads under streams", 1, 5, reloadsUnderStreams},
	{"server: reloads under short streams of 24 clients", 0, 10, reloadsUnderShortStreams},
	{"server: a reload while a model is loading", 1, 6, reloadWhileLoading},
	{"store: its write lock is held for seconds", 1, 4, storeLocked},
	{"store: its write lock is held for too long", 0, 1, storeLockedForLong},
	{"store: the disk is full", 1, 4, storeFull},
	{"store: its file is gone for a while", 1, 5, storeGone},
	{"remotes: the only one is away for 0.2 or 0.5 s", 1, 14, remoteAwayShortly},
	{"remotes: the only one is away for 3 or 12 s", 0, 6, remoteAway},
	{"nodes: the one with the model is killed, and starts again", 0, 5, nodeKilled},
	{"limits: no file descriptor is left", 2, 8, noFiles},
	{"limits: memory_budget is too small", 1, 3, noMemory},
	{"clients: disconnect amid everything", 1, 6, clientsGone},
	{"clients: a flood of bodies", 0, 2, bodyFlood},
}
