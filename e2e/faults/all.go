package faults

// all are the faults, in the order of the table.
var all = []fault{
	{"engine: kill -9 amid requests", 1, 25, engineKilled},
	{"engine: SIGTERM or SIGINT, idle", 1, 10, engineSignalledIdle},
	{"engine: SIGTERM or SIGINT amid requests", 1, 15, engineSignalled},
	{"engine: SIGSTOP amid requests", 1, 10, engineStopped},
	{"engine: slow, with hardly any processor time", 1, 4, engineStarved},
	{"engine: its file is gone, without its mode, or a script that exits", 1, 9, engineSpoilt},
	{"engine: the model's file is cut short or removed", 1, 10, modelSpoilt},
	{"server: kill -9 amid stored chats", 1, 25, serverKilled},
	{"server: SIGTERM amid streams", 1, 15, serverStopped},
	{"server: two starts at once", 3, 60, twoStarts},
	{"server: reloads under streams", 1, 10, reloadsUnderStreams},
	{"server: a reload while a model is loading", 1, 15, reloadWhileLoading},
	{"store: its write lock is held for seconds", 1, 8, storeLocked},
	{"store: its write lock is held for too long", 0, 2, storeLockedForLong},
	{"store: the disk is full", 1, 8, storeFull},
	{"limits: no file descriptor is left", 2, 15, noFiles},
	{"limits: memory_budget is too small", 1, 5, noMemory},
	{"clients: disconnect amid everything", 1, 15, clientsGone},
	{"clients: a flood of bodies", 1, 4, bodyFlood},
}
