class _List:
    def __init__(self, kind):
        self.kind, self.all = kind, []

    def addDesc(self, desc):
        self.all.append(desc)


nixlRegDList = nixlXferDList = _List
